#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "operator/api/document.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"

// A pod of another controller before it is created, and the JSON that turns it into one that reads
// through the cache.
namespace stoker::control {

// On a pod template. The label asks for the cache and names a Dataset of the pod's namespace.
inline constexpr const char* kDatasetLabel = "stoker.dev/dataset";
inline constexpr const char* kDatasetNamespaceAnnotation = "stoker.dev/dataset-namespace";
inline constexpr const char* kAccessAnnotation = "stoker.dev/access";         // SDK, S3 or Files
inline constexpr const char* kMountPathAnnotation = "stoker.dev/mount-path";  // folder of the files
inline constexpr const char* kDatasetsAnnotation = "stoker.dev/datasets";     // JSON: more datasets
inline constexpr const char* kCacheAnnotation = "stoker.dev/cache";           // JSON: spec.cache
// kContainerAnnotation (operator/api/pod.h) names the container that reads the dataset.

// Written by the webhook: the spec of the pod's TrainingJob, as JSON.
inline constexpr const char* kWorkloadAnnotation = "stoker.dev/workload";
// Written by the webhook instead: why the pod runs without a cache.
inline constexpr const char* kRefusalAnnotation = "stoker.dev/not-injected";

struct ForeignMount {
    std::string volume;
    std::string path;

    bool operator==(const ForeignMount&) const = default;
};

struct ForeignContainer : ContainerProgram {
    std::string name;
    std::vector<ForeignMount> mounts;

    bool operator==(const ForeignContainer&) const = default;
};

// The fields of a v1 Pod that decide about its cache. Before creation a pod of a template has
// neither name nor uid, and its namespace is that of the request.
struct ForeignPod {
    ObjectMeta meta;
    bool host_network = false;
    bool host_pid = false;
    bool share_process_namespace = false;
    bool host_users = true;  // false: a user namespace of its own
    std::vector<ForeignContainer> containers;
    std::vector<std::string> init_container_names;
    std::vector<std::string> volume_names;

    bool operator==(const ForeignPod&) const = default;
};

// The items of a JSON list of objects. kInvalidArgument: the text is not such a list.
Result<std::vector<Json>> parse_list(std::string_view text);

// Number of pods that a workload starts, from the fields of its kind: Job, ReplicaSet, Deployment,
// StatefulSet, JobSet, PyTorchJob and its siblings, TrainJob, RayCluster, RayJob. nullopt: unknown.
std::optional<std::int64_t> pods_of_workload(const Json& workload);

// How a workload ended, from the conditions of its kind (Complete, Completed, Succeeded, Failed) or
// from a RayJob's jobStatus.
struct WorkloadEnd {
    bool succeeded = false;
    std::string message;
    std::optional<WallTime> at;

    bool operator==(const WorkloadEnd&) const = default;
};

std::optional<WorkloadEnd> end_of_workload(const Json& workload);

// The JSON Patch (RFC 6902) that adds to `pod` what it lacks of `wanted`, a pod template: labels and
// annotations; volumes, init containers, and variables of `container`, each by its name; mounts of
// `container` by their path. The new init containers stand first, but after a service mesh's. What
// the pod has already stays, except for the variables in `replaced`. An empty list: nothing to add,
// as for a pod that was patched before.
Json addition_patch(
    const Json& pod,
    const Json& wanted,
    const std::string& container,
    const std::vector<std::string>& replaced);

}  // namespace stoker::control
