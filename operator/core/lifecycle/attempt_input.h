#pragma once

#include <cstdint>
#include <optional>

#include "operator/core/view/training_job_view.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

// Input for the manifests of one attempt, with its preferred nodes and Kueue's placement.
// `seconds_left` until the job's deadline; none: no deadline. The result refers to the view. Pure.
JobInput input_of_attempt(
    const TrainingJobView& view, std::int64_t attempt, std::optional<std::int64_t> seconds_left);

}  // namespace stoker::control
