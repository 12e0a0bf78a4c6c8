#pragma once

#include <optional>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/spec/resolve.h"

namespace stoker::control {

// The condition LossesShared of a job that reads a dataset under contract Importance (family
// ICache) on several nodes that do not share its samples: a warning, because losses travel between
// peers only. nullopt: the job has no such dataset among `resolved`. Pure.
std::optional<Condition> judge_losses(
    const TrainingJobSpec& spec, const std::vector<ResolvedDataset>& resolved);

}  // namespace stoker::control
