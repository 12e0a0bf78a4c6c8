#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/view/training_job_view.h"

// A TrainingJob with a queue's label is Kueue's job (docs/adr/0013): its Workload stands in the
// queue for all its attempts, and an attempt has pods only while that Workload is admitted. What is
// written to the Workload follows Kueue v0.10.0, pkg/controller/jobframework. Pure.
namespace stoker::control {

// The Workload of this job, or null: there is none, or it belongs to somebody else. Valid while the
// view lives.
const Workload* own_workload(const TrainingJobView& view);

// Whether the job may have pods: it is not queued, or Kueue has admitted it. While Kueue's objects
// cannot be read, what runs goes on.
bool may_have_pods(const TrainingJobView& view);

// Kueue's words on why there are no pods, as sentences.
std::string why_not_admitted(const TrainingJobView& view);

// Node selectors, tolerations and labels that the admission's flavors and checks give the pods.
PodPlacement placement_of(const KueueView& kueue);

struct QueueWait {
    std::string message;                   // sentences
    std::vector<Action> actions{};         // what brings it further
    std::optional<Duration> wake_after{};  // where nothing tells us that the reason is gone
};

// Why the attempt in `input`, which has no Job yet, must wait; none: it may start.
std::optional<QueueWait> wait_in_queue(const TrainingJobView& view, const JobInput& input);

// The change of the Workload that follows from that lifecycle; none: it stays. `pods_left`: something of the job
// still runs, so its quota is still used.
std::optional<Action> settle_workload(
    const TrainingJobView& view, const Lifecycle& lifecycle, bool pods_left, WallTime now);

}  // namespace stoker::control
