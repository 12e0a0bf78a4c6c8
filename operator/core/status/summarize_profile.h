#pragma once

#include <optional>

#include "operator/core/spec/make_condition.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// Writes the profile and the cache's benefit into a TrainingJob's status. `cached`: resident bytes
// now, over all nodes. Without a profile nothing changes: the last numbers stay.
void summarize_profile(const TrainingJobView& view, Bytes cached, TrainingJobStatus& status);

// The condition Profiled: whether the job's needs are known, and, if so, its rates. If the job was
// profiled before and `view` has no profile now, the condition stays as it was.
Condition judge_profile(const TrainingJobView& view);

// The cache's benefit to the job of the view, from its profile; nullopt without a profile or while
// the size of its datasets is unknown. Assumes that bytes are spread evenly over its nodes.
std::optional<JobValue> value_of_job(const TrainingJobView& view, Bytes cached);

}  // namespace stoker::control
