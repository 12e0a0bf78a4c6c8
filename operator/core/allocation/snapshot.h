#pragma once

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

namespace stoker::control {

// The last decision of an operator with what it was made from, as `kubectl stoker` reads it: a
// planner that is given the view again decides the same (docs/adr/0005-explaining-allocations.md).
struct AllocationSnapshot {
    std::string version;    // of the operator
    WallTime served_at{};   // by the operator's clock, so that its age needs no other one
    WallTime decided_at{};  // by the same clock
    AllocationView view;
    AllocationPlan plan;

    [[nodiscard]] Duration age() const { return served_at - decided_at; }
};

// One JSON document. Numbers read back as they were, not-a-number included. Pure, thread-safe.
std::string print_snapshot(const AllocationSnapshot& snapshot);

// Fields that are not there read as their defaults, unknown ones are passed over: an operator may
// be a little older or newer than who asks. kInvalidArgument: not such a document, or one of a
// format that is not ours; the message says which.
Result<AllocationSnapshot> parse_snapshot(std::string_view text);

}  // namespace stoker::control
