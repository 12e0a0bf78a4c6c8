#pragma once

#include <cstdint>
#include <optional>

#include "operator/core/view/training_job_view.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

// Everything that the attempt of that number is made of: where its bytes are, and where Kueue has
// admitted it. `seconds_left` of the job's deadline; none: it has none. The result refers to the
// view. Pure.
JobInput input_of_attempt(
    const TrainingJobView& view, std::int64_t attempt, std::optional<std::int64_t> seconds_left);

}  // namespace stoker::control
