#pragma once

#include "operator/core/lifecycle/lifecycle.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {

// Applies the status changes of the lifecycle to the view, as if they had been written.
inline void write_down(const Lifecycle& lifecycle, TrainingJobView& view) {
    TrainingJobStatus& status = view.job.status = lifecycle.status;
    if (is_final(lifecycle.state)) {
        const bool complete = lifecycle.state == JobState::kComplete;
        set_condition(
            status.conditions,
            {complete ? "Complete" : "Failed",
             ConditionStatus::kTrue,
             1,
             wall(0),
             complete ? "Complete" : lifecycle.failure,
             lifecycle.message});
    }
}

}  // namespace stoker::control
