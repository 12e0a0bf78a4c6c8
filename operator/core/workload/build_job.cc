#include "operator/core/workload/build_job.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "common/base/quantity.h"
#include "common/base/saturating.h"
#include "operator/core/spec/validate.h"
#include "operator/core/workload/build_pod.h"

namespace stoker::control {

namespace {

constexpr std::int32_t kWeightMax = 100;
constexpr std::int32_t kRendezvousPort = 29500;

// Amount of one resource: the limit, else the request, else 0. Malformed amounts count as 0.
std::int64_t count_of(const Resources& resources, const std::string& name) {
    const std::string& limit = value_or_empty(resources.limits, name);
    const std::string& request = value_or_empty(resources.requests, name);
    const Result<std::int64_t> count = parse_whole(limit.empty() ? request : limit);
    return count ? *count : 0;
}

std::int64_t gpu_count(const Resources& resources) {
    TextMap names = resources.limits;
    names.insert(resources.requests.begin(), resources.requests.end());
    std::int64_t total = 0;
    for (const auto& [name, text] : names) {
        total = add_saturated(total, name.ends_with("/gpu") ? count_of(resources, name) : 0);
    }
    return total;
}

// The template's own labels, annotations and node selectors win.
void add_placement(const PodPlacement& placement, PodManifest& pod) {
    pod.labels.insert(placement.labels.begin(), placement.labels.end());
    pod.annotations.insert(placement.annotations.begin(), placement.annotations.end());
    pod.node_selector.insert(placement.node_selector.begin(), placement.node_selector.end());
    for (const Json& toleration : placement.tolerations) {
        if (std::ranges::find(pod.tolerations, toleration) == pod.tolerations.end()) {
            pod.tolerations.push_back(toleration);
        }
    }
}

}  // namespace

bool owns(const ObjectMeta& owner, const ObjectMeta& child) {
    const OwnerReference* reference = child.controller();
    return reference != nullptr && reference->uid == owner.uid;
}

const std::string& uid_in_pods(const TrainingJob& job) {
    return job.spec.workload_ref ? job.spec.workload_ref->uid : job.meta.uid;
}

OwnerReference owner_of(const TrainingJob& job) {
    return {"stoker.dev/v1alpha1", "TrainingJob", job.meta.name, job.meta.uid, true};
}

TextMap common_labels(const TrainingJob& job) {
    return {
        {"app.kubernetes.io/managed-by", "stoker"},
        {"app.kubernetes.io/name", "training-job"},
        {std::string{kJobLabel}, job.meta.name}};
}

std::string job_name(const TrainingJob& job, std::int64_t attempt) {
    return fmt::format("{}-a{}", job.meta.name, attempt);
}

std::string pod_prefix(const TrainingJob& job, std::int64_t attempt) {
    return job.spec.workload_ref ? "" : job_name(job, attempt) + "-";
}

std::string service_name(const TrainingJob& job) {
    return job.meta.name + "-ranks";
}

std::int64_t attempt_of(const ObjectMeta& job) {
    const std::string& written = value_or_empty(job.labels, std::string{kAttemptLabel});
    std::int64_t attempt = 0;
    const char* end = written.data() + written.size();
    const auto parsed = std::from_chars(written.data(), end, attempt);
    return parsed.ec == std::errc{} && parsed.ptr == end && attempt > 0 ? attempt : 0;
}

std::int64_t gpus_per_node(const TrainerSpec& trainer) {
    return gpu_count(trainer.resources);
}

std::int64_t processes_per_node(const TrainerSpec& trainer) {
    const std::string& wanted = trainer.processes_per_node;
    std::int64_t count = 0;
    if (wanted == "cpu") {
        count = count_of(trainer.resources, "cpu");
    } else if (wanted == "gpu" || wanted == "auto") {
        count = gpu_count(trainer.resources);
    } else if (const Result<std::int64_t> number = parse_whole(wanted)) {
        count = *number;
    }
    return std::clamp<std::int64_t>(count, 1, kProcessesPerNodeMax);
}

std::vector<EnvVar> rendezvous_env(const TrainingJob& job, std::int64_t attempt) {
    const std::string address = fmt::format("{}-0.{}", job_name(job, attempt), service_name(job));
    const std::string port = std::to_string(kRendezvousPort);
    const std::int64_t processes = processes_per_node(job.spec.trainer);
    const std::string nodes = std::to_string(job.spec.trainer.node_count);
    const Json rank =
        from_field("metadata.annotations['batch.kubernetes.io/job-completion-index']");
    std::vector<EnvVar> result = {
        {"PET_NNODES", nodes, {}},
        {"PET_NPROC_PER_NODE", std::to_string(processes), {}},
        {"PET_NODE_RANK", "", rank},
        {"PET_MASTER_ADDR", address, {}},
        {"PET_MASTER_PORT", port, {}},
        {"MASTER_ADDR", address, {}},
        {"MASTER_PORT", port, {}},
        {"PYTHONUNBUFFERED", "1", {}}};
    if (processes == 1) {
        result.push_back({"WORLD_SIZE", nodes, {}});
        result.push_back({"RANK", "", rank});
    }
    return result;
}

std::vector<PreferredNode> preferred_nodes(
    const std::vector<ResolvedDataset>& datasets,
    const std::string& pool,
    std::span<const Holding> holdings) {
    std::map<std::string, Bytes> bytes_on;
    for (const Holding& holding : holdings) {
        const bool ours =
            std::any_of(datasets.begin(), datasets.end(), [&](const ResolvedDataset& dataset) {
                return dataset.uid == holding.dataset_uid;
            });
        if (ours && holding.pool == pool && holding.resident > Bytes::zero()) {
            bytes_on[holding.node] += holding.resident;
        }
    }
    std::vector<std::pair<std::string, Bytes>> most_first(bytes_on.begin(), bytes_on.end());
    std::stable_sort(most_first.begin(), most_first.end(), [](const auto& a, const auto& b) {
        return a.second > b.second;
    });
    most_first.resize(std::min(most_first.size(), kPreferredNodeCountMax));
    std::vector<PreferredNode> result;
    for (const auto& [node, bytes] : most_first) {
        const double share = static_cast<double>(bytes.count()) /
                             static_cast<double>(most_first.front().second.count());
        const auto weight = static_cast<std::int32_t>(share * kWeightMax);
        result.push_back({node, std::clamp(weight, 1, kWeightMax)});
    }
    return result;
}

JobManifest build_job(const JobInput& input) {
    const TrainingJob& job = input.job;
    JobManifest result;
    result.meta.ns = job.meta.ns;
    result.meta.name = job_name(job, input.attempt);
    result.meta.owners = {owner_of(job)};
    result.meta.labels = common_labels(job);
    result.meta.labels[std::string{kAttemptLabel}] = std::to_string(input.attempt);
    result.node_count = job.spec.trainer.node_count;
    result.active_deadline_seconds = input.active_deadline_seconds;
    result.pod = build_pod(input);
    result.pod.labels.merge(common_labels(job));
    result.pod.labels[std::string{kAttemptLabel}] = std::to_string(input.attempt);
    result.pod.preferred_nodes = preferred_nodes(input.datasets, input.pool.name, input.holdings);
    add_placement(input.placement, result.pod);
    return result;
}

ServiceManifest build_service(const TrainingJob& job) {
    ServiceManifest result;
    result.meta.ns = job.meta.ns;
    result.meta.name = service_name(job);
    result.meta.owners = {owner_of(job)};
    result.meta.labels = common_labels(job);
    result.selector = {{std::string{kJobLabel}, job.meta.name}};
    return result;
}

}  // namespace stoker::control
