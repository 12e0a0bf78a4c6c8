#pragma once

#include <optional>

#include "operator/api/training_job.h"
#include "operator/core/spec/make_condition.h"

namespace stoker::control {

// The condition LossesShared of a job that reads a dataset under contract Importance (family
// ICache) on several nodes: a warning, because losses do not travel between nodes. nullopt: the job
// does not. Pure.
std::optional<Condition> judge_losses(const TrainingJobSpec& spec);

}  // namespace stoker::control
