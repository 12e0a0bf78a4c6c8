#include "operator/core/lifecycle/attempt_input.h"

#include <algorithm>
#include <limits>

#include "operator/core/lifecycle/kueue_gate.h"

namespace stoker::control {

namespace {

// The Job controller multiplies by 1e9 in 64 bits. The operator enforces longer deadlines itself.
constexpr std::int64_t kJobDeadlineMax = std::numeric_limits<std::int32_t>::max();

}  // namespace

JobInput input_of_attempt(
    const TrainingJobView& view, std::int64_t attempt, std::optional<std::int64_t> seconds_left) {
    JobInput input{view.job, view.datasets.datasets, view.pool, view.settings, attempt, {}, {}};
    input.placement = placement_of(view.kueue);
    input.preferred_nodes = preferred_nodes(view.datasets.datasets, view.pool.name, view.holdings);
    if (seconds_left) {
        input.active_deadline_seconds = std::clamp<std::int64_t>(*seconds_left, 1, kJobDeadlineMax);
    }
    return input;
}

}  // namespace stoker::control
