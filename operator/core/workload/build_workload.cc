#include "operator/core/workload/build_workload.h"

#include <charconv>

namespace stoker::control {

namespace {

constexpr std::string_view kProvisioningPrefix = "provreq.kueue.x-k8s.io/";

// Parsed like Kueue: a value that is not a positive number counts as absent.
std::optional<std::int64_t> max_execution_seconds(const TrainingJob& job) {
    const std::string& text = value_or_empty(job.meta.labels, std::string{kMaxExecutionLabel});
    std::int32_t seconds = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, seconds);
    return read.ec == std::errc{} && read.ptr == end && seconds > 0
               ? std::optional<std::int64_t>(seconds)
               : std::nullopt;
}

TextMap provisioning_annotations(const TrainingJob& job) {
    TextMap result;
    for (const auto& [key, text] : job.meta.annotations) {
        if (key.starts_with(kProvisioningPrefix)) {
            result.emplace(key, text);
        }
    }
    return result;
}

// The fields that Kueue's quotas count.
ContainerManifest countable(const ContainerManifest& container) {
    ContainerManifest result;
    result.name = container.name;
    result.resources = container.resources;
    result.always_running = container.always_running;
    return result;
}

PodManifest countable(const PodManifest& pod) {
    PodManifest result;
    for (const ContainerManifest& container : pod.init_containers) {
        result.init_containers.push_back(countable(container));
    }
    result.user_init_containers = pod.user_init_containers;
    result.trainer = countable(pod.trainer);
    result.node_selector = pod.node_selector;
    result.affinity = pod.affinity;
    result.tolerations = pod.tolerations;
    result.priority_class_name = pod.priority_class_name;
    result.runtime_class_name = pod.runtime_class_name;
    return result;
}

}  // namespace

bool is_queued(const TrainingJob& job) {
    return !value_or_empty(job.meta.labels, std::string{kQueueLabel}).empty();
}

std::string workload_name(const TrainingJob& job) {
    return "trainingjob-" + job.meta.name;
}

WorkloadManifest build_workload(const JobInput& input, const WorkloadPriority& priority) {
    const TrainingJob& job = input.job;
    WorkloadManifest result;
    result.meta.ns = job.meta.ns;
    result.meta.name = workload_name(job);
    result.meta.owners = {owner_of(job)};
    result.meta.labels = common_labels(job);
    result.meta.labels["kueue.x-k8s.io/job-uid"] = job.meta.uid;
    result.meta.annotations = provisioning_annotations(job);
    result.meta.annotations[std::string{kDigestAnnotation}] = workload_digest(input);
    result.queue_name = value_or_empty(job.meta.labels, std::string{kQueueLabel});
    result.priority = priority;
    result.max_execution_seconds = max_execution_seconds(job);
    result.pod_count = job.spec.trainer.node_count;
    result.pod_template = pod_template(build_job(input));
    return result;
}

std::string workload_digest(const JobInput& input) {
    JobInput unplaced = input;
    unplaced.attempt = 1;
    unplaced.placement = {};
    JobManifest manifest;
    for (const std::string_view label : {kQueueLabel, kPriorityClassLabel, kMaxExecutionLabel}) {
        const std::string key{label};
        manifest.meta.labels[key] = value_or_empty(input.job.meta.labels, key);
    }
    manifest.meta.annotations = provisioning_annotations(input.job);
    manifest.node_count = input.job.spec.trainer.node_count;
    manifest.pod = countable(build_job(unplaced).pod);
    return digest(manifest);
}

}  // namespace stoker::control
