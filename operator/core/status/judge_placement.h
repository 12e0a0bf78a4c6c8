#pragma once

#include <cstdint>
#include <optional>

#include "operator/api/condition.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// The condition ClairvoyantPlacement: whether the nodes were told to keep what their own ranks read
// most, for the worst of the job's datasets with this placement. False with reason ReadsDiffer stays
// until the job is suspended or starts its next attempt, also when the sidecar that has told it is
// gone. Once a pod of the attempt has succeeded, the last answer stays. nullopt: the job has no such
// dataset, or no cache. Pure.
std::optional<Condition> judge_placement(const TrainingJobView& view, std::int64_t attempt);

}  // namespace stoker::control
