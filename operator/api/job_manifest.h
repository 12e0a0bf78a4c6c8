#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "operator/api/meta.h"
#include "operator/api/training_job.h"

// Objects that the operator creates, as values: for a TrainingJob one Indexed Job and one headless
// Service, for a Dataset the Jobs of its fillers and its packing Job. Only decisions and job-specific fields are here;
// the constant parts are in job_manifest.cc.
namespace stoker::control {

// A directory on the node, which must exist.
struct HostPathVolume {
    std::string path;

    bool operator==(const HostPathVolume&) const = default;
};

struct EmptyDirVolume {
    bool memory = false;
    std::string size_limit;  // quantity; empty: none

    bool operator==(const EmptyDirVolume&) const = default;
};

// A ServiceAccount token for one audience, renewed by the kubelet, in the file `token`.
struct TokenVolume {
    std::string audience;
    std::int64_t expiration_seconds = 3600;

    bool operator==(const TokenVolume&) const = default;
};

// Every key of a Secret as a file.
struct SecretVolume {
    std::string secret;
    bool optional = false;  // if true, the pod starts without the Secret, with an empty volume

    bool operator==(const SecretVolume&) const = default;
};

// One key of a ConfigMap or Secret, mounted as a file of the same name.
struct BundleVolume {
    CaBundle bundle;
    bool optional = false;

    bool operator==(const BundleVolume&) const = default;
};

struct ClaimVolume {
    std::string claim_name;
    bool read_only = true;

    bool operator==(const ClaimVolume&) const = default;
};

// An inline volume of a CSI driver.
struct CsiVolume {
    std::string driver;
    bool read_only = true;
    TextMap attributes;

    bool operator==(const CsiVolume&) const = default;
};

struct VolumeManifest {
    std::string name;
    std::variant<
        HostPathVolume,
        EmptyDirVolume,
        TokenVolume,
        SecretVolume,
        BundleVolume,
        ClaimVolume,
        CsiVolume>
        source;

    bool operator==(const VolumeManifest&) const = default;
};

struct MountManifest {
    std::string volume;
    std::string path;
    bool read_only = true;

    bool operator==(const MountManifest&) const = default;
};

// Marks the container as started: the first 200 to a GET on its port or, with a `command`, the
// command's first success inside the container.
struct StartupProbe {
    std::string path;
    std::int32_t port = 0;
    std::vector<std::string> command{};
    std::int32_t period_seconds = 1;
    std::int32_t failures_max = 600;

    bool operator==(const StartupProbe&) const = default;
};

struct ContainerManifest : ContainerProgram, ContainerSettings {
    std::string name;
    std::vector<MountManifest> mounts{};
    std::vector<Json> user_mounts{};
    bool restricted = false;      // the whole restricted security context, as user and group 65532
    bool always_running = false;  // an init container with restartPolicy Always: a native sidecar
    std::optional<std::int32_t> http_port{};
    std::optional<std::int32_t> peer_port{};
    std::optional<StartupProbe> startup_probe{};

    bool operator==(const ContainerManifest&) const = default;
};

// A preferred node of the pods. `weight` is 1 to 100.
struct PreferredNode {
    std::string node;
    std::int32_t weight = 1;

    bool operator==(const PreferredNode&) const = default;
};

// Placement of a Job's pods in addition to its template.
struct PodPlacement {
    TextMap labels;
    TextMap annotations;
    TextMap node_selector;
    std::vector<Json> tolerations;

    bool operator==(const PodPlacement&) const = default;
};

// `preferred_nodes` and `required_node` are added to the user's affinity.
struct PodManifest : PodScheduling {
    TextMap labels;
    TextMap annotations;
    std::vector<ContainerManifest> init_containers;
    std::vector<Json> user_init_containers;  // after ours
    ContainerManifest trainer;  // the main container; in a filler, the sidecar itself; else
                                // of a packing Job
    std::vector<VolumeManifest> volumes;
    std::vector<Json> user_volumes;
    std::string service_account_name;
    bool automount_service_account_token = false;
    std::vector<PreferredNode> preferred_nodes;
    std::string required_node;  // the only node for the pods; empty: the scheduler chooses
    std::int64_t termination_grace_period_seconds = 60;
    bool host_ipc = false;
    std::string subdomain;  // the headless Service

    bool operator==(const PodManifest&) const = default;
};

struct JobManifest {
    ObjectMeta meta;  // name, ns, labels, annotations, owners
    std::int32_t node_count = 1;
    // True: one pod without a rank, whose container restarts for ever (a filler). False: an Indexed
    // Job, which ends at the first failure.
    bool restarts = false;
    // Set: one pod without a rank. The Job fails after that many failed pods, and at once if the main
    // container ends with 2 or 3; a lost node or an eviction does not count (a packing Job).
    std::optional<std::int32_t> retries{};
    // Seconds from the Job's end to its deletion; none: never.
    std::optional<std::int64_t> ttl_seconds_after_finished{};
    std::optional<std::int64_t> active_deadline_seconds;
    PodManifest pod;

    bool operator==(const JobManifest&) const = default;
};

// Headless, and it publishes pods that are not ready: ranks must find rank 0 before any pod is
// ready.
struct ServiceManifest {
    ObjectMeta meta;
    TextMap selector;

    bool operator==(const ServiceManifest&) const = default;
};

// Bodies of server-side applies: one JSON object each.
Json to_json(const JobManifest& job);
Json to_json(const ServiceManifest& service);

// The Job's spec.template, a v1 PodTemplateSpec.
Json pod_template(const JobManifest& job);

// Body of a merge patch that sets a Job's deadline, in seconds after its start.
Json deadline_patch(std::int64_t seconds);

// Body of a merge patch that sets one annotation; an empty text removes it.
Json annotation_patch(const std::string& key, const std::string& text);

// A digest of everything in the manifest (FNV-1a of its JSON): sixteen hex digits. Equal manifests
// have equal digests.
std::string digest(const JobManifest& job);

// The text of a value of an argument or variable, in which the kubelet expands $(NAME) and $$.
std::string literal(const std::string& text);

// Return EnvVarSource values.
Json from_field(std::string_view field_path);
Json from_secret(std::string_view secret, std::string_view key, bool optional);

}  // namespace stoker::control
