#pragma once

#include <optional>

#include "operator/core/spec/make_condition.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// What the profile and the cache's worth look like in a TrainingJob's status. `cached` is resident
// now, over all nodes. Without a profile nothing is changed: the last numbers stand.
void summarize_profile(const TrainingJobView& view, Bytes cached, TrainingJobStatus& status);

// The condition Profiled: whether it is known what the job needs, and what that is. For a job that
// was profiled before, while `view` has no profile: what was told stands.
Condition judge_profile(const TrainingJobView& view);

// The worth of the cache to the job of the view, from its profile; nothing without one or while the
// size of its datasets is not known. Bytes are taken as spread evenly over its nodes.
std::optional<JobValue> value_of_job(const TrainingJobView& view, Bytes cached);

}  // namespace stoker::control
