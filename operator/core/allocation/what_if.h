#pragma once

#include <string>
#include <variant>

#include "common/base/result.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

// What the planner would decide if the cluster were another one. Pure.
namespace stoker::control {

// More room in a pool, or less, over all its nodes in equal parts.
struct AddCapacity {
    std::string pool;
    Bytes bytes{};
    bool less = false;
};

struct RemoveJob {
    ObjectKey job;
};

// Another nominal quota for a namespace that has one.
struct SetNominal {
    std::string ns;
    std::string pool;
    Bytes nominal{};
};

using Change = std::variant<AddCapacity, RemoveJob, SetNominal>;

// "200Gi more in pool nvme (50Gi on each of 4 nodes)", "without tj/resnet of namespace team-a".
std::string describe(const Change& change, const AllocationView& view);

// Errors: kNotFound (no such pool, job or quota in the view; the message names those that are).
Status apply_change(const Change& change, AllocationView& view);

// Where plans lead when they are carried out one after the other: everybody gives back and takes
// what they are told, what the planner wants swept is swept, and nobody's needs change.
struct Outcome {
    AllocationView view;
    AllocationPlan plan;
    bool at_rest = false;  // false: still moving after kSettleRoundsMax plans
};

inline constexpr int kSettleRoundsMax = 12;

Outcome settle(AllocationView view);

}  // namespace stoker::control
