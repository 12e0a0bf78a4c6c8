#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "operator/api/job_manifest.h"
#include "operator/api/training_job.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/spec/resolve.h"

// Builds the Job and the Service of a TrainingJob. Pure: equal inputs, equal manifests.
namespace stoker::control {

inline constexpr std::string_view kJobLabel = "stoker.dev/training-job";
inline constexpr std::string_view kAttemptLabel = "stoker.dev/attempt";
inline constexpr std::string_view kDigestAnnotation = "stoker.dev/template-digest";
inline constexpr std::size_t kPreferredNodeCountMax = 20;

// The operator's settings, equal for all jobs.
struct JobSettings {
    std::string sidecar_image;
    std::string sidecar_image_pull_policy;
    Resources sidecar_resources;
    TextMap sidecar_proxy;  // HTTPS_PROXY etc.; the trainer's settings take precedence
    Bytes window_bytes = mib(256);
    std::int32_t sidecar_http_port = 9455;
    std::int32_t sidecar_peer_port = 7331;     // other nodes fetch samples from it; 0: they do not
    std::int32_t s3_port = 9711;               // of the S3 endpoint, on the pod's loopback
    Resources s3_resources;                    // of the S3 endpoint
    Resources files_resources;                 // of stoker-files
    Resources packing_resources;               // of a packing Job's pod
    std::vector<std::string> metrics_readers;  // CIDR ranges that may read the metrics
    std::string control_address;               // host:port of the operator's gRPC service
    std::string control_ca_pem;                // CA of its certificate; public
    std::string shared_memory_size = "8Gi";    // limit of the trainer's /dev/shm
    std::int64_t grace_period_seconds = 60;

    bool operator==(const JobSettings&) const = default;
};

// Facts that only a pod of another controller has (operator/core/workload/foreign_job.h).
struct ForeignPlace {
    std::string attempt_uid;     // of its controller: pods with the same uid share a listing
    std::optional<EnvVar> rank;  // named JOB_COMPLETION_INDEX
    // The program's own S3 keys: STOKER_S3_... for the S3 endpoint, AWS_... to sign with. Empty:
    // none are visible in the pod.
    std::vector<EnvVar> s3_keys{};

    bool operator==(const ForeignPlace&) const = default;
};

// Input of one attempt's manifests.
struct JobInput {
    const TrainingJob& job;
    const std::vector<ResolvedDataset>& datasets;
    const ResolvedPool& pool;  // empty name: no sidecar, no node directory
    const JobSettings& settings;
    std::int64_t attempt = 1;
    std::span<const Holding> holdings;                    // preferred nodes; must outlive this
    std::optional<std::int64_t> active_deadline_seconds;  // remaining time of the job
    std::int64_t end_when_idle_seconds = 0;               // of the sidecar; 0: never
    PodPlacement placement{};                             // from Kueue's admission
    std::optional<ForeignPlace> foreign{};                // the pod is another controller's
};

// Whether `owner` is the controller of the object.
bool owns(const ObjectMeta& owner, const ObjectMeta& child);

// The uid by which the job's pods name it: its workload's, which exists before the TrainingJob
// does, or its own.
const std::string& uid_in_pods(const TrainingJob& job);

// Owner reference for all objects of the job.
OwnerReference owner_of(const TrainingJob& job);
TextMap common_labels(const TrainingJob& job);

// For example "resnet-a2".
std::string job_name(const TrainingJob& job, std::int64_t attempt);

// Names of the attempt's pods begin with it; empty with a workloadRef: all pods of the job count.
std::string pod_prefix(const TrainingJob& job, std::int64_t attempt);

// For example "resnet-ranks".
std::string service_name(const TrainingJob& job);

// Number of the attempt, from the Job's label; 0: no valid label.
std::int64_t attempt_of(const ObjectMeta& job);

// Processes per pod (numProcPerNode), at least 1. A number: that many; gpu: the sum over the limits
// (else requests) of resources named ".../gpu"; cpu: their whole CPUs; auto: GPUs if any, else 1.
std::int64_t processes_per_node(const TrainerSpec& trainer);

// Sum over the limits (else requests) of resources named ".../gpu"; 0: none.
std::int64_t gpus_per_node(const TrainerSpec& trainer);

// Environment for torchrun (PET_*) and for other scripts (MASTER_ADDR and so on). RANK and
// WORLD_SIZE are set only with one process per pod; otherwise torchrun computes them for each
// process.
std::vector<EnvVar> rendezvous_env(const TrainingJob& job, std::int64_t attempt);

// Nodes that hold bytes of the job's datasets in its pool, weighted 1 to 100 by bytes; at most 20,
// largest first.
std::vector<PreferredNode> preferred_nodes(
    const std::vector<ResolvedDataset>& datasets,
    const std::string& pool,
    std::span<const Holding> holdings);

// The Indexed Job of one attempt. Merging podTemplate: labels, annotations, nodeSelector,
// tolerations, volumes, init containers (after the sidecar), volume mounts, ports, envFrom and
// affinity terms are added to Stoker's; single values (ServiceAccount, priority class, grace
// period, ...) replace Stoker's defaults; torchrun variables that the user sets are kept.
JobManifest build_job(const JobInput& input);

ServiceManifest build_service(const TrainingJob& job);

}  // namespace stoker::control
