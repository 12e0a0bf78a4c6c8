#include "operator/controllers/cachepool/sweep_pod.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "operator/controllers/cluster_cache.h"
#include "operator/core/build_pod.h"

namespace stoker::control {

namespace {

constexpr const char* kPoolAnnotation = "stoker.dev/pool";
constexpr const char* kHostPathAnnotation = "stoker.dev/host-path";
constexpr const char* kNodeUidAnnotation = "stoker.dev/node-uid";
constexpr const char* kExpiredAnnotation = "stoker.dev/expired";
constexpr std::int64_t kDeadlineSeconds = 540;  // less than SweepLimits::patience

// A directory that is younger may belong to a dataset that was made after the list.
constexpr const char* kOldEnough = "+60";

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        result.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    return result;
}

void add(std::vector<std::string>& to, std::initializer_list<std::string> words) {
    to.insert(to.end(), words);
}

}  // namespace

// flock: a sidecar that leads holds `lock`, and so does rm while it works. With `-exec ... +` find
// itself fails when the command does; `-exec ... ;` alone would hide it.
std::vector<std::string> sweep_command(const NodeSweep& sweep, const std::string& root) {
    std::vector<std::string> result = {
        "find", root, "-mindepth", "2", "-maxdepth", "2", "-type", "d"};
    for (const std::string& kept : sweep.kept) {
        add(result, {"!", "-path", fmt::format("{}/{}", root, kept)});
    }
    add(result, {"(", "-mmin", kOldEnough});
    for (const std::string& uid : sweep.expired) {
        add(result, {"-o", "-name", uid});
    }
    add(result, {")"});
    add(result, {"-exec", "test", "-f", "{}/lock", ";"});
    add(result, {"-exec", "test", "-d", "{}/segments", ";"});
    add(result, {"(", "-exec", "flock", "-n", "-E", "0", "{}/lock", "rm", "-rf", "{}", ";"});
    add(result, {"-o", "-exec", "false", "{}", "+", ")"});
    return result;
}

// Not root: group and inherited modes let uid 65532 remove everything below the pool.
Json build_sweep_pod(
    const NodeSweep& sweep,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner) {
    NodePod pod;
    pod.name = sweep_pod_name(sweep.place);
    pod.component = kSweepComponent;
    pod.node = sweep.place.node;
    pod.host_path = sweep.place.host_path;
    pod.annotations = {
        {kPoolAnnotation, sweep.place.pool},
        {kHostPathAnnotation, sweep.place.host_path},
        {kNodeUidAnnotation, sweep.place.node_uid},
        {kExpiredAnnotation, fmt::format("{}", fmt::join(sweep.expired, ","))}};
    pod.command = sweep_command(sweep, "/pool");
    pod.user = kSidecarGroup;
    pod.group = kSidecarGroup;
    pod.deadline_seconds = kDeadlineSeconds;
    return build_node_pod(pod, settings, owner);
}

SweepPod read_sweep_pod(const Pod& pod) {
    SweepPod result;
    result.key = pod.meta.key();
    result.place = {
        value_or_empty(pod.meta.annotations, kPoolAnnotation),
        pod.node_name,
        value_or_empty(pod.meta.annotations, kNodeUidAnnotation),
        value_or_empty(pod.meta.annotations, kHostPathAnnotation)};
    result.expired = split(value_or_empty(pod.meta.annotations, kExpiredAnnotation));
    result.phase = pod.phase;
    result.deleting = pod.meta.deleting_since.has_value();
    result.created_at = pod.meta.created_at;
    return result;
}

}  // namespace stoker::control
