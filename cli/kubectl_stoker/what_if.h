#pragma once

#include <string>
#include <vector>

#include "cli/kubectl_stoker/options.h"
#include "operator/core/allocation/snapshot.h"
#include "operator/core/allocation/what_if.h"

namespace stoker::cli {

// The changes that the flags request; names without a namespace belong to `ns`.
std::vector<control::Change> changes_of(const Options& options, const std::string& ns);

// One job's allocation before and after the change. Both are final: the planner moves no more bytes
// (but see WhatIf::at_rest).
struct WhatIfRow {
    control::ObjectKey job;
    std::string pool;
    bool removed = false;
    control::JobAllocation before;
    control::JobAllocation after;  // empty if the change removes the job
};

struct WhatIf {
    std::vector<std::string> changes;  // for people
    std::vector<WhatIfRow> rows;       // largest gain first
    double rate_before = 0;            // bytes/s of all jobs that stay, together
    double rate_after = 0;
    bool at_rest = true;  // false: the planner still moves bytes; the figures are a snapshot
};

// Runs the planner over the snapshot with and without the changes. Errors: see apply_change().
Result<WhatIf> what_if(
    const control::AllocationView& view, const std::vector<control::Change>& changes);

std::string what_if_text(const WhatIf& result);
std::string what_if_json(const WhatIf& result);

}  // namespace stoker::cli
