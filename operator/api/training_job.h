#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/ca_bundle.h"
#include "operator/api/choices.h"
#include "operator/api/condition.h"
#include "operator/api/contract.h"
#include "operator/api/document.h"
#include "operator/api/meta.h"

// TrainingJob of stoker.dev/v1alpha1 as values; crds/stoker.dev_trainingjobs.yaml describes every
// field. Fields that today's CRD refuses are here as well, so that validate() refuses them if the
// cluster has an older CRD.
namespace stoker::control {

struct EnvVar {
    std::string name;
    std::string value;
    Json value_from;  // EnvVarSource; null: `value` counts

    bool operator==(const EnvVar&) const = default;
};

// The proxy variables of sidecars. Upper case only: gRPC, which connects to the operator, reads the
// lower-case ones.
inline constexpr std::array<std::string_view, 4> kProxyVariables = {
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"};

// Quantities as written.
struct Resources {
    TextMap limits;
    TextMap requests;

    bool operator==(const Resources&) const = default;
};

// A container's program: image, command, resources.
struct ContainerProgram {
    std::string image;
    std::vector<std::string> command;
    std::vector<std::string> args;
    std::vector<EnvVar> env;
    Resources resources;

    bool operator==(const ContainerProgram&) const = default;
};

struct TrainerSpec : ContainerProgram {
    std::int32_t node_count = 1;
    std::string processes_per_node = "auto";  // auto, cpu, gpu or a number
    std::int64_t epochs = 0;  // epochs that the program intends to train; 0: unknown

    bool operator==(const TrainerSpec&) const = default;
};

using NamedText = std::pair<std::string, std::string>;

// Container settings that a podTemplate and its pods share.
struct ContainerSettings {
    std::string image_pull_policy;
    std::string working_dir;
    std::vector<Json> env_from;
    std::vector<Json> ports;
    Json security_context;

    bool operator==(const ContainerSettings&) const = default;
};

// podTemplate.spec.containers[name=trainer].
struct TrainerOverlay : ContainerSettings {
    std::vector<Json> volume_mounts;
    std::vector<std::string> volume_mount_paths;  // of volume_mounts, in their order
    std::vector<std::string> volume_mount_names;  // of volume_mounts, in their order

    bool operator==(const TrainerOverlay&) const = default;
};

// Pod placement and settings that a podTemplate and its pods share.
struct PodScheduling {
    TextMap node_selector;
    Json affinity;
    std::vector<Json> tolerations;
    std::vector<Json> topology_spread_constraints;
    std::string priority_class_name;
    std::string scheduler_name;
    std::string runtime_class_name;
    std::vector<std::string> image_pull_secrets;
    Json security_context;

    bool operator==(const PodScheduling&) const = default;
};

// podTemplate. Absent fields are empty.
struct PodOverlay : PodScheduling {
    TextMap labels;
    TextMap annotations;
    std::string service_account_name;
    std::optional<bool> automount_service_account_token;
    std::optional<std::int64_t> termination_grace_period_seconds;
    std::vector<Json> volumes;
    std::vector<std::string> volume_names;  // of volumes, in their order
    std::vector<NamedText> host_paths;      // of volumes on the node: name, path
    std::vector<NamedText> csi_drivers;     // of inline CSI volumes: name, driver
    TrainerOverlay trainer;
    std::vector<std::string> container_names;
    std::vector<Json> init_containers;
    std::vector<std::string> init_container_names;  // of init_containers, in their order
    std::vector<NamedText> init_container_mounts;   // container, volume
    bool host_network = false;
    bool host_pid = false;
    bool host_ipc = false;
    bool share_process_namespace = false;
    std::string restart_policy;

    bool operator==(const PodOverlay&) const = default;
};

struct RunPolicy {
    std::int64_t backoff_limit = 3;
    std::optional<std::int64_t> ttl_seconds_after_finished;
    std::optional<std::int64_t> active_deadline_seconds;

    bool operator==(const RunPolicy&) const = default;
};

// How the program shuffles a dataset with placement Clairvoyant.
struct ClairvoyantSpec {
    ReadOrder order = ReadOrder::kTorchDistributed;
    std::int64_t seed = 0;
    bool drop_last = false;

    bool operator==(const ClairvoyantSpec&) const = default;
};

// One of spec.datasets. Exactly one of dataset_ref and storage_uri is set in a valid spec.
struct JobDataset {
    std::string name;
    std::optional<std::string> dataset_ref;
    std::optional<std::string> dataset_ref_namespace;
    std::optional<std::string> storage_uri;
    std::optional<std::string> secret_ref;
    std::string endpoint;               // of storage_uri; empty: the region's default
    std::string region;                 // of storage_uri
    std::optional<bool> path_style;     // of storage_uri; default: true with an endpoint
    std::optional<CaBundle> ca_bundle;  // of storage_uri
    std::optional<std::string> mount_path;
    DatasetAccess access = DatasetAccess::kSdk;
    Sampling sampling = Sampling::kEpochShuffle;
    Contract contract = Contract::kExact;
    std::map<Contract, ContractParameters> parameters;  // of each member that is present
    SamplePlacement placement = SamplePlacement::kHash;
    std::optional<ClairvoyantSpec> clairvoyant;

    bool operator==(const JobDataset&) const = default;
};

// The Dataset of an entry with a dataset_ref, for a job in that namespace.
ObjectKey dataset_key(const std::string& job_namespace, const JobDataset& entry);

struct ProfilingSpec {
    std::string mode;
    std::optional<std::int64_t> steps;
    std::optional<std::int64_t> max_seconds;

    bool operator==(const ProfilingSpec&) const = default;
};

inline constexpr std::int64_t kCacheWeightMax = 1000;

struct CacheSpec {
    CacheMode mode = CacheMode::kAuto;
    std::optional<std::string> pool_ref;
    std::optional<Bytes> max_bytes;  // over all nodes of the job
    std::optional<Bytes> min_bytes;  // over all nodes of the job
    std::int64_t weight = 1;         // 1..kCacheWeightMax
    Medium medium = Medium::kNvme;
    EvictionPolicy eviction_policy = EvictionPolicy::kAuto;
    Warmup warmup = Warmup::kLazy;
    std::optional<ProfilingSpec> profiling;
    OnCacheFailure on_cache_failure = OnCacheFailure::kBypass;

    bool operator==(const CacheSpec&) const = default;
};

// A workload of another controller, in the TrainingJob's namespace.
struct WorkloadRef {
    std::string api_version;
    std::string kind;
    std::string name;
    std::string uid;

    bool operator==(const WorkloadRef&) const = default;
};

struct TrainingJobSpec {
    // The job describes the pods of this workload and starts none; `trainer` is a copy of what the
    // operator saw.
    std::optional<WorkloadRef> workload_ref;
    TrainerSpec trainer;
    PodOverlay pod_template;
    RunPolicy run_policy;
    bool suspend = false;
    std::vector<JobDataset> datasets;
    CacheSpec cache;

    bool operator==(const TrainingJobSpec&) const = default;
};

struct ChildJobStatus {
    std::string name;
    std::int64_t active = 0;
    std::int64_t ready = 0;
    std::int64_t succeeded = 0;
    std::int64_t failed = 0;

    bool operator==(const ChildJobStatus&) const = default;
};

struct BenefitStatus {
    std::string seconds_saved_per_epoch;
    std::string per_gib;
    std::string marginal_per_gib;
    std::string method;
    std::string gpu_seconds_per_gib_hour;
    std::string speedup;  // epoch time without a cache ÷ with the bytes cached now

    bool operator==(const BenefitStatus&) const = default;
};

struct CacheStatus {
    std::string pool;
    std::int64_t wanted_bytes = 0;
    std::int64_t allocated_bytes = 0;
    std::int64_t borrowed_bytes = 0;
    std::int64_t used_bytes = 0;
    std::int64_t cache_bytes = 0;
    std::int64_t origin_bytes = 0;
    std::int64_t origin_bytes_per_second = 0;
    std::string
        hit_ratio;  // share of cache_bytes in all bytes read, "0.62"; empty before the first read
    std::optional<WallTime> sampled_at;
    std::optional<BenefitStatus> benefit;

    bool operator==(const CacheStatus&) const = default;
};

struct ProfileStatus {
    std::int64_t samples_per_second_needed = 0;
    std::int64_t samples_per_second_remote = 0;
    std::int64_t compute_seconds_per_epoch = 0;
    std::int64_t dataset_bytes = 0;
    std::string verdict;     // Unknown, ComputeBound or DataBound
    std::string wait_share;  // "0.35"
    std::string confidence;  // "0.8"

    bool operator==(const ProfileStatus&) const = default;
};

struct ProgressStatus {
    std::int64_t epoch = 0;
    std::int64_t percentage = 0;
    std::int64_t samples_read = 0;
    std::optional<std::int64_t> estimated_remaining_seconds;

    bool operator==(const ProgressStatus&) const = default;
};

// The CachePool that an attempt keeps to its end. An empty name: it runs without a cache.
struct AttemptPool {
    std::int64_t attempt = 0;
    std::string name;

    bool operator==(const AttemptPool&) const = default;
};

struct JobDatasetStatus {
    std::string name;
    std::string uid;  // of the dataset that the running attempt reads; empty: none runs
    std::int64_t total_bytes = 0;
    std::int64_t samples = 0;
    std::int64_t allocated_bytes = 0;
    std::int64_t used_bytes = 0;
    std::string revision{};  // the same for all ranks of an attempt; empty: none pinned yet
    std::int64_t revision_attempt = 0;  // the attempt of `revision`; 0: none
    std::string
        changed_key{};  // first object that the attempt found changed at the origin; empty: none

    bool operator==(const JobDatasetStatus&) const = default;
};

struct TrainingJobColumns {
    std::string cache;
    std::string hit;
    std::string benefit;
    std::string borrowed;
    std::string origin;

    bool operator==(const TrainingJobColumns&) const = default;
};

struct TrainingJobStatus {
    std::int64_t observed_generation = 0;
    std::vector<Condition> conditions;  // sorted by type
    TrainingJobColumns columns;
    std::optional<WallTime> start_time;
    std::optional<WallTime> completion_time;
    std::int64_t active_seconds = 0;  // before active_since; counts towards the deadline
    std::optional<WallTime> active_since;
    std::int64_t attempt = 0;   // of the current or next child Job; 0: none was needed yet
    std::int64_t restarts = 0;  // attempts that count against backoffLimit
    std::optional<WallTime> last_restart_time;
    std::optional<AttemptPool> attempt_pool;
    std::vector<ChildJobStatus> jobs;
    std::optional<CacheStatus> cache;
    std::optional<ProfileStatus> profile;
    std::optional<ProgressStatus> progress;
    std::vector<JobDatasetStatus> datasets;

    bool operator==(const TrainingJobStatus&) const = default;
};

struct TrainingJob {
    ObjectMeta meta;
    TrainingJobSpec spec;
    TrainingJobStatus status;

    bool operator==(const TrainingJob&) const = default;
};

// Body of a server-side apply to /status: kind, name, uid and the whole status, one JSON object.
Json status_patch(const TrainingJob& job);

}  // namespace stoker::control
