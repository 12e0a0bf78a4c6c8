#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "operator/api/job_manifest.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/spec/resolve.h"

// From a TrainingJob to the Job and the Service that it becomes. Pure: equal inputs, equal
// manifests.
namespace stoker::control {

inline constexpr std::string_view kJobLabel = "stoker.dev/training-job";
inline constexpr std::string_view kAttemptLabel = "stoker.dev/attempt";
inline constexpr std::string_view kDigestAnnotation = "stoker.dev/template-digest";
inline constexpr std::size_t kPreferredNodeCountMax = 20;

// The operator's own settings, the same for all jobs.
struct JobSettings {
    std::string sidecar_image;
    std::string sidecar_image_pull_policy;
    Resources sidecar_resources;
    TextMap sidecar_proxy;  // HTTPS_PROXY and its like; a trainer's own come first
    Bytes window_bytes = mib(256);
    std::int32_t sidecar_http_port = 9455;
    std::vector<std::string> metrics_readers;  // ranges that may read it, in CIDR form
    std::string control_address;               // host:port of the operator's gRPC service
    std::string control_ca_pem;              // the CA that its certificate is checked with; public
    std::string shared_memory_size = "8Gi";  // limit of the trainer's /dev/shm
    std::int64_t grace_period_seconds = 60;

    bool operator==(const JobSettings&) const = default;
};

// Everything that one attempt is made of.
struct JobInput {
    const TrainingJob& job;
    const std::vector<ResolvedDataset>& datasets;
    const ResolvedPool& pool;  // without a name: no sidecar, no node directory
    const JobSettings& settings;
    std::int64_t attempt = 1;
    std::vector<PreferredNode> preferred_nodes;
    std::optional<std::int64_t> active_deadline_seconds;  // what is left of the job's
    std::int64_t end_when_idle_seconds = 0;               // of the sidecar; 0: never
    PodPlacement placement{};                             // where Kueue has admitted it
};

// Whether `owner` is the controller of the object.
bool owns(const ObjectMeta& owner, const ObjectMeta& child);

// The metadata that all objects of the job carry.
OwnerReference owner_of(const TrainingJob& job);
TextMap common_labels(const TrainingJob& job);

// "resnet-a2".
std::string job_name(const TrainingJob& job, std::int64_t attempt);

// "resnet-ranks".
std::string service_name(const TrainingJob& job);

// The attempt that an owned Job is, from its label; 0: none.
std::int64_t attempt_of(const ObjectMeta& job);

// Processes in each pod: the spec's number; gpu: what the limits (else requests) of resources named
// ".../gpu" add up to; cpu: their whole CPUs; auto: GPUs if there are any, else 1. At least 1.
std::int64_t processes_per_node(const TrainerSpec& trainer);

// What the limits (else requests) of resources named ".../gpu" add up to; 0: none.
std::int64_t gpus_per_node(const TrainerSpec& trainer);

// The environment that torchrun and hand-written scripts expect, in both families of names. RANK and
// WORLD_SIZE only with one process in each pod: with more, torchrun computes them for each process.
std::vector<EnvVar> rendezvous_env(const TrainingJob& job, std::int64_t attempt);

// The nodes that hold bytes of the job's datasets in its pool, weighted 1 to 100 by bytes, at most
// 20, most first.
std::vector<PreferredNode> preferred_nodes(
    const std::vector<ResolvedDataset>& datasets,
    const std::string& pool,
    const std::vector<Holding>& holdings);

// The Indexed Job of one attempt. podTemplate is merged so: labels,
// annotations, nodeSelector, tolerations, volumes, init containers (after the sidecar), volume
// mounts, ports, envFrom and affinity terms are added to ours; single values (ServiceAccount,
// priority class, grace period, ...) replace our defaults; a variable of torchrun that the user
// sets stays as it is.
JobManifest build_job(const JobInput& input);

ServiceManifest build_service(const TrainingJob& job);

}  // namespace stoker::control
