#pragma once

#include "operator/api/training_job.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// Writes attempt, restarts and times of the lifecycle into the status, which the next decision
// reads.
void note_lifecycle(const Lifecycle& lifecycle, TrainingJobStatus& status);

// The status of a TrainingJob as it should be now. What nobody measures any more keeps its last
// number, and its condition becomes Unknown with the reason NodesSilent; a finished job keeps the
// last words about its cache. Pure; summarizing twice at one moment changes nothing.
TrainingJobStatus summarize_training_job(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Moment& now);

}  // namespace stoker::control
