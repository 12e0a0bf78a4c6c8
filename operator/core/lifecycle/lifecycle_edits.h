#pragma once

#include "operator/api/job.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/view/training_job_view.h"

// Changes that several rules of the lifecycle make to their verdict. Pure.
namespace stoker::control {

DeleteJob deletion_of(const Job& job);

// Adds the action, unless the Job is on its way out.
void delete_unless_deleting(const Job& job, Lifecycle& lifecycle);

// Looks again at `due`, or earlier where that was asked for already; within a day.
void wake_at(Lifecycle& lifecycle, WallTime due, WallTime now);

// Between attempts the active time runs on; where a job waits, is suspended or has ended, it stops.
void keep_time(bool has_attempt, WallTime now, Lifecycle& lifecycle);

// Tells of a starting job why its Job or its pods cannot be made, and of a queued one why its
// Workload cannot. What the API server does not understand is an invalid spec.
void tell_diagnosis(const TrainingJobView& view, Lifecycle& lifecycle);

}  // namespace stoker::control
