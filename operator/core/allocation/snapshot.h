#pragma once

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

namespace stoker::control {

// An operator's last decision and its input, as `kubectl stoker` reads it: planning the view again
// gives the same plan (docs/adr/0005-explaining-allocations.md).
struct AllocationSnapshot {
    std::string version;    // of the operator
    WallTime served_at{};   // by the operator's clock: readers compute ages without their own
    WallTime decided_at{};  // by the same clock
    AllocationView view;
    AllocationPlan plan;

    [[nodiscard]] Duration age() const { return served_at - decided_at; }
};

// Prints one JSON document. Numbers read back exactly, including NaN. Pure, thread-safe.
std::string print_snapshot(const AllocationSnapshot& snapshot);

// Missing fields read as their defaults, unknown ones are ignored: the operator may be a little
// older or newer than the reader. kInvalidArgument: not a snapshot, or an unsupported format; the
// message names it.
Result<AllocationSnapshot> parse_snapshot(std::string_view text);

}  // namespace stoker::control
