#include "operator/api/foreign_pod.h"

#include <algorithm>
#include <array>

#include "operator/api/field_codec.h"
#include "operator/api/shared_fields.h"

namespace stoker::control {

namespace {

void read_names(const JsonReader& pod, ForeignPod& result) {
    const JsonReader spec = pod.object("spec");
    spec.each("initContainers", [&](const JsonReader& container) {
        result.init_container_names.push_back(container.text("name"));
    });
    spec.each("volumes", [&](const JsonReader& volume) {
        result.volume_names.push_back(volume.text("name"));
    });
}

}  // namespace

template <>
inline constexpr auto kFields<ForeignMount> =
    std::tuple{field("name", &ForeignMount::volume), field("mountPath", &ForeignMount::path)};

template <>
inline constexpr auto kFields<ForeignContainer> = std::tuple{
    field("name", &ForeignContainer::name),
    field("image", &ForeignContainer::image),
    field("command", &ForeignContainer::command),
    field("args", &ForeignContainer::args),
    field("env", &ForeignContainer::env),
    field("resources", &ForeignContainer::resources),
    field("volumeMounts", &ForeignContainer::mounts)};

template <>
inline constexpr auto kFields<ForeignPod> = std::tuple{
    field("metadata", &ForeignPod::meta),
    field("spec.hostNetwork", &ForeignPod::host_network),
    field("spec.hostPID", &ForeignPod::host_pid),
    field("spec.shareProcessNamespace", &ForeignPod::share_process_namespace),
    field("spec.hostUsers", &ForeignPod::host_users),
    field("spec.containers", &ForeignPod::containers)};
template <>
inline constexpr auto kAlsoRead<ForeignPod> = &read_names;

template Result<ForeignPod> read_document<ForeignPod>(const Json& json);

namespace {

// Number of a Job's pods that run at the same time, from its parallelism and completions.
std::int64_t pods_of_job(const JsonReader& spec) {
    const std::int64_t parallel = spec.integer("parallelism", 1);
    const auto completions = spec.maybe_integer("completions");
    return completions ? std::min(parallel, *completions) : parallel;
}

std::int64_t pods_of_job_set(const JsonReader& spec) {
    std::int64_t total = 0;
    spec.each("replicatedJobs", [&](const JsonReader& job) {
        total += job.integer("replicas", 1) * pods_of_job(job.object("template").object("spec"));
    });
    return total;
}

// Number of pods of a Kubeflow job, from its replica specs ("pytorchReplicaSpecs" and so on), one
// for each role.
std::int64_t pods_of_replica_specs(const JsonReader& spec) {
    std::int64_t total = 0;
    for (const std::string field :
         {"pytorchReplicaSpecs",
          "tfReplicaSpecs",
          "mpiReplicaSpecs",
          "xgbReplicaSpecs",
          "paddleReplicaSpecs",
          "jaxReplicaSpecs"}) {
        for (const std::string role :
             {"Master", "Worker", "Chief", "PS", "Launcher", "Evaluator"}) {
            const JsonReader replicas = spec.object(field).object(role);
            total += replicas.present() ? replicas.integer("replicas", 1) : 0;
        }
    }
    return total;
}

std::int64_t pods_of_ray(const JsonReader& cluster) {
    std::int64_t total = 1;  // the head pod
    cluster.each("workerGroupSpecs", [&](const JsonReader& group) {
        total += group.integer("replicas", 1);
    });
    return total;
}

std::int64_t count_pods(const JsonReader& root) {
    const std::string kind = root.text("kind");
    const JsonReader spec = root.object("spec");
    if (kind == "Job") {
        return pods_of_job(spec);
    }
    if (kind == "JobSet") {
        return pods_of_job_set(spec);
    }
    if (kind == "TrainJob") {
        return spec.object("trainer").integer("numNodes", 1);
    }
    if (kind == "RayCluster") {
        return pods_of_ray(spec);
    }
    if (kind == "RayJob") {
        return pods_of_ray(spec.object("rayClusterSpec"));
    }
    const bool has_replicas = kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet";
    return has_replicas ? spec.integer("replicas", 1) : pods_of_replica_specs(spec);
}

std::optional<WorkloadEnd> find_end(const JsonReader& status) {
    std::optional<WorkloadEnd> result;
    status.each("conditions", [&](const JsonReader& condition) {
        const std::string type = condition.text("type");
        const bool succeeded = type == "Complete" || type == "Completed" || type == "Succeeded";
        if (condition.text("status") == "True" && (succeeded || type == "Failed")) {
            result = WorkloadEnd{
                succeeded, condition.text("message"), condition.maybe_time("lastTransitionTime")};
        }
    });
    const std::string ray = status.text("jobStatus");
    if (!result && (ray == "SUCCEEDED" || ray == "FAILED" || ray == "STOPPED")) {
        result =
            WorkloadEnd{ray == "SUCCEEDED", status.text("message"), status.maybe_time("endTime")};
    }
    return result;
}

}  // namespace

Result<std::vector<Json>> parse_list(std::string_view text) {
    STOKER_TRY(const Json parsed, Json::parse(text));
    std::vector<Json> items;
    STOKER_TRY_VOID(read_json(
        json_object({{"list", parsed, Presence::kAlways}}),
        [&](const JsonReader& root) { items = root.raw_items("list"); }));
    return items;
}

std::optional<std::int64_t> pods_of_workload(const Json& workload) {
    std::int64_t count = 0;
    const Status read =
        read_json(workload, [&](const JsonReader& root) { count = count_pods(root); });
    return read && count > 0 ? std::optional(count) : std::nullopt;
}

std::optional<WorkloadEnd> end_of_workload(const Json& workload) {
    std::optional<WorkloadEnd> end;
    const Status read =
        read_json(workload, [&](const JsonReader& root) { end = find_end(root.object("status")); });
    return read ? end : std::nullopt;
}

}  // namespace stoker::control
