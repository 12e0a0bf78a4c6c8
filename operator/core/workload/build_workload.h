#pragma once

#include <string>
#include <string_view>

#include "operator/api/workload.h"
#include "operator/core/workload/build_job.h"

// Builds the Workload that Kueue admits for a TrainingJob with a queue label. Pure.
namespace stoker::control {

inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kPriorityClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr std::string_view kMaxExecutionLabel = "kueue.x-k8s.io/max-exec-time-seconds";

// Whether Kueue decides when the job runs.
bool is_queued(const TrainingJob& job);

// "trainingjob-resnet": the same for all attempts, so that a restart keeps its reservation.
std::string workload_name(const TrainingJob& job);

// Builds the Workload from the attempt's pods, with the annotations of ProvisioningRequests and
// kDigestAnnotation.
WorkloadManifest build_workload(const JobInput& input, const WorkloadPriority& priority);

// Equal for inputs that Kueue would admit alike: same queue, classes, number of pods, resources and
// node selection. A new image does not change it, so the job does not queue again.
std::string workload_digest(const JobInput& input);

}  // namespace stoker::control
