#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/dataset.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/spec/moment.h"
#include "operator/core/sweep/plan_fillers.h"
#include "operator/core/sweep/plan_packing.h"

namespace stoker::control {

struct DatasetView {
    Dataset dataset;
    std::vector<JobUse> users;                            // running jobs, and its fillers
    std::vector<SidecarReport> reports;                   // at least those of the users
    std::set<std::string> nodes;                          // all nodes that exist
    std::set<std::pair<std::string, std::string>> swept;  // (pool, node): its bytes are gone
    std::vector<FillerState> fillers{};                   // fillers that are needed
    // The planner's holdings. They count on nodes without a fresh report: an ended sidecar's last
    // report may not have reached the status.
    std::vector<Holding> holdings{};
    std::optional<PeerGroup> peers{};         // as sent to the sidecars
    std::optional<PackingOutcome> packing{};  // none: the Dataset has no spec.packing
};

// Computes the present status of a Dataset. Bytes on a node keep their last reported value while no
// job uses them: they are still on the disk. Ready becomes Unknown when the users' sidecars stop
// reporting; without users it keeps its last value.
DatasetStatus summarize_dataset(const DatasetView& view, const Moment& now);

}  // namespace stoker::control
