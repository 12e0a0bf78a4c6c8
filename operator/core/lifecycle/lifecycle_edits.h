#pragma once

#include "operator/api/job.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/view/training_job_view.h"

// Changes that several lifecycle rules make to their result. Pure.
namespace stoker::control {

DeleteJob deletion_of(const Job& job);

// Adds the action, unless the Job is already being deleted.
void delete_unless_deleting(const Job& job, Lifecycle& lifecycle);

// Requests a decision at `due`, or at an earlier time requested before; within a day.
void wake_at(Lifecycle& lifecycle, WallTime due, WallTime now);

// Active time runs on between attempts; it stops while a job waits, is suspended or has ended.
void keep_time(bool has_attempt, WallTime now, Lifecycle& lifecycle);

// Reports why a starting job's Job or pods, or a queued job's Workload, cannot be created. An
// object that the API server cannot parse is an invalid spec.
void tell_diagnosis(const TrainingJobView& view, Lifecycle& lifecycle);

}  // namespace stoker::control
