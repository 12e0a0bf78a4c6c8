#pragma once

#include "operator/core/lifecycle.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {

// As if the status that the lifecycle asks for had been written.
inline void write_down(const Lifecycle& lifecycle, TrainingJobView& view) {
    TrainingJobStatus& status = view.job.status;
    status.attempt = lifecycle.attempt;
    status.restarts = lifecycle.restarts;
    status.start_time = lifecycle.start_time;
    status.completion_time = lifecycle.completion_time;
    status.last_restart_time = lifecycle.last_restart_time;
    status.active_seconds = lifecycle.active_time.seconds;
    status.active_since = lifecycle.active_time.since;
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
