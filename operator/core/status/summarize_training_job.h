#pragma once

#include "operator/api/training_job.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// Computes the present status of a TrainingJob. Values that no sidecar reports keep their last
// number, and their condition becomes Unknown with the reason NodesSilent; a finished job keeps its
// last cache conditions. Pure; a second call at the same moment changes nothing.
TrainingJobStatus summarize_training_job(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Moment& now);

}  // namespace stoker::control
