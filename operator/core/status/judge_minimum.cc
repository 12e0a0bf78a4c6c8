#include "operator/core/status/judge_minimum.h"

#include <fmt/format.h>

namespace stoker::control {

Judgement judge_minimum(const JobAllocation& allocation) {
    if (allocation.reason == AllocationReason::kWaitingForPods) {
        return {
            ConditionStatus::kUnknown,
            std::string{to_string(allocation.reason)},
            fmt::format("No pod of the job is on a node of pool {}.", allocation.pool)};
    }
    if (allocation.guaranteed >= allocation.minimum) {
        return holds_if(
            true,
            "Guaranteed",
            fmt::format(
                "{} are guaranteed in pool {}.", to_string(allocation.minimum), allocation.pool));
    }
    return holds_if(
        false,
        "NotCovered",
        fmt::format(
            "{} of {} are guaranteed in pool {}: the nominal quota of the datasets' namespace, or "
            "the room on the job's nodes, covers no more. The rest is granted while nobody else "
            "needs it.",
            to_string(allocation.guaranteed),
            to_string(allocation.minimum),
            allocation.pool));
}

}  // namespace stoker::control
