#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/view/training_job_view.h"

// A TrainingJob with a queue label is a Kueue job (docs/adr/0013): one Workload queues for all its
// attempts, and an attempt has pods only while that Workload is admitted. Writes to the Workload
// follow Kueue v0.10.0, pkg/controller/jobframework. Pure.
namespace stoker::control {

// The Workload of this job; null: none exists, or another owner has its name. Valid while the view
// lives.
const Workload* own_workload(const TrainingJobView& view);

// Whether the job may have pods: it is not queued, or Kueue has admitted it. While Kueue's objects
// cannot be read, running pods continue.
bool may_have_pods(const TrainingJobView& view);

// Kueue's reasons why the job has no pods, as sentences.
std::string why_not_admitted(const TrainingJobView& view);

// Node selectors, tolerations and labels for the pods, from the admission's flavors and checks.
PodPlacement placement_of(const KueueView& kueue);

struct QueueWait {
    std::string message;                   // sentences
    std::vector<Action> actions{};         // to make progress
    std::optional<Duration> wake_after{};  // set if no event reports that the reason is gone
};

// Why the attempt in `input`, which has no Job yet, must wait; none: it may start.
std::optional<QueueWait> wait_in_queue(const TrainingJobView& view, const JobInput& input);

// The change to the Workload that the lifecycle requires; none: no change. `pods_left`: the job
// still has pods, so it still uses its quota.
std::optional<Action> settle_workload(
    const TrainingJobView& view, const Lifecycle& lifecycle, bool pods_left, WallTime now);

}  // namespace stoker::control
