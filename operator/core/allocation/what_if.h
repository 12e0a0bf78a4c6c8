#pragma once

#include <string>
#include <variant>

#include "common/base/result.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

// The planner's decision for a changed cluster. Pure.
namespace stoker::control {

// Adds or removes capacity of a pool, the same on all its nodes.
struct AddCapacity {
    std::string pool;
    Bytes bytes{};
    bool less = false;
};

struct RemoveJob {
    ObjectKey job;
};

// Changes the nominal quota of a namespace that has one.
struct SetNominal {
    std::string ns;
    std::string pool;
    Bytes nominal{};
};

using Change = std::variant<AddCapacity, RemoveJob, SetNominal>;

// Text of a change: "200Gi more in pool nvme (50Gi on each of 4 nodes)", "without tj/resnet of
// namespace team-a".
std::string describe(const Change& change, const AllocationView& view);

// Errors: kNotFound (the view has no such pool, job or quota; the message lists those it has).
Status apply_change(const Change& change, AllocationView& view);

// Final state of repeated plans that are carried out while demands stay the same.
struct Outcome {
    AllocationView view;
    AllocationPlan plan;
    bool at_rest = false;  // false: plans still differ after kSettleRoundsMax
};

inline constexpr int kSettleRoundsMax = 12;

Outcome settle(AllocationView view);

}  // namespace stoker::control
