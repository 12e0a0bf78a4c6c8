#pragma once

#include <string>
#include <string_view>

#include "operator/api/workload.h"
#include "operator/core/workload/build_job.h"

// From a TrainingJob with a queue's label to the Workload that Kueue admits. Pure.
namespace stoker::control {

inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kPriorityClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr std::string_view kMaxExecutionLabel = "kueue.x-k8s.io/max-exec-time-seconds";

// Whether Kueue decides when the job runs.
bool is_queued(const TrainingJob& job);

// "trainingjob-resnet": one for all attempts, so that a restart keeps what is reserved.
std::string workload_name(const TrainingJob& job);

// With the pods of the attempt in `input`, annotations of ProvisioningRequests and
// kDigestAnnotation.
WorkloadManifest build_workload(const JobInput& input, const WorkloadPriority& priority);

// Equal for two inputs that Kueue would admit alike: queue, classes, number of pods, resources and
// what chooses nodes. A new image is no reason to queue again.
std::string workload_digest(const JobInput& input);

}  // namespace stoker::control
