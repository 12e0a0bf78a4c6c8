#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/job_state.h"
#include "operator/core/view/training_job_view.h"

// State of a TrainingJob with a workloadRef, from the workload and its pods. Pure.
namespace stoker::control {

struct WorkloadState {
    JobState state = JobState::kWaiting;
    std::string message;               // one sentence for people
    std::optional<WallTime> ended_at;  // of a final state, if the workload says so
    // When to read the workload again: no event reports its end.
    std::optional<Duration> wake_after;
};

// Complete or Failed if the workload says so; else by its pods: Waiting (none is alive), Starting,
// or Running (as many pods as the workload wants are ready or have succeeded).
WorkloadState judge_workload(const TrainingJobView& view);

// The lifecycle of a job with a workloadRef: no actions, and a final state stays final.
Lifecycle describe_workload(const TrainingJobView& view, WallTime now);

}  // namespace stoker::control
