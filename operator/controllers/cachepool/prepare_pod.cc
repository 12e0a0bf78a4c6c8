#include "operator/controllers/cachepool/prepare_pod.h"

#include "operator/controllers/cluster_cache.h"
#include "operator/core/build_pod.h"

namespace stoker::control {

namespace {

constexpr const char* kHostPathAnnotation = "stoker.dev/host-path";
constexpr const char* kNodeUidAnnotation = "stoker.dev/node-uid";
constexpr const char* kBootIdAnnotation = "stoker.dev/boot-id";
constexpr std::int64_t kDeadlineSeconds = 240;  // less than PreparationLimits::patience

// The owner of a directory may give it to a group that he is in, and the group's bit makes the
// kubelet's later directories inherit it. `;` and not `+`: a directory is changed before find looks
// into it, so that one made meanwhile either is seen or inherits.
std::vector<std::string> command() {
    return {
        "find",
        "/pool",
        "-maxdepth",
        "2",
        "-type",
        "d",
        "-user",
        "0",
        "-exec",
        "chgrp",
        std::to_string(kSidecarGroup),
        "{}",
        ";",
        "-exec",
        "chmod",
        "2770",
        "{}",
        ";"};
}

}  // namespace

// Root in name only: the owner of what the kubelet makes.
Json build_prepare_pod(
    const PreparationTarget& target,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner) {
    NodePod pod;
    pod.name = preparation_pod_name(target);
    pod.component = kPrepareComponent;
    pod.node = target.node;
    pod.host_path = target.host_path;
    pod.make_directory = true;
    pod.annotations = {
        {kHostPathAnnotation, target.host_path},
        {kNodeUidAnnotation, target.node_uid},
        {kBootIdAnnotation, target.boot_id}};
    pod.command = command();
    pod.user = 0;
    pod.group = kSidecarGroup;
    pod.deadline_seconds = kDeadlineSeconds;
    return build_node_pod(pod, settings, owner);
}

PreparationPod read_prepare_pod(const Pod& pod) {
    PreparationPod result;
    result.key = pod.meta.key();
    result.target.node = pod.node_name;
    result.target.node_uid = value_or_empty(pod.meta.annotations, kNodeUidAnnotation);
    result.target.boot_id = value_or_empty(pod.meta.annotations, kBootIdAnnotation);
    result.target.host_path = value_or_empty(pod.meta.annotations, kHostPathAnnotation);
    result.phase = pod.phase;
    result.deleting = pod.meta.deleting_since.has_value();
    result.created_at = pod.meta.created_at;
    return result;
}

}  // namespace stoker::control
