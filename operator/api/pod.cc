#include "operator/api/pod.h"

#include <charconv>
#include <set>

#include "operator/api/field_codec.h"

namespace stoker::control {

namespace {

constexpr const char* kRankLabel = "batch.kubernetes.io/job-completion-index";
constexpr const char* kJobNameLabel = "batch.kubernetes.io/job-name";

PodPhase parse_phase(std::string_view text) {
    if (text == "Pending") {
        return PodPhase::kPending;
    }
    if (text == "Running") {
        return PodPhase::kRunning;
    }
    if (text == "Succeeded") {
        return PodPhase::kSucceeded;
    }
    return text == "Failed" ? PodPhase::kFailed : PodPhase::kUnknown;
}

ContainerState read_container(const JsonReader& status) {
    ContainerState result;
    result.started = status.flag("started");
    result.ready = status.flag("ready");
    result.restart_count = status.integer("restartCount");
    const JsonReader state = status.object("state");
    const JsonReader waiting = state.object("waiting");
    const JsonReader terminated = state.object("terminated");
    result.waiting_reason = waiting.text("reason");
    result.exit_code = terminated.maybe_integer("exitCode");
    result.reason = terminated.text("reason");
    result.message = result.exit_code ? terminated.text("message") : waiting.text("message");
    return result;
}

void read_pod_conditions(const JsonReader& status, Pod& pod) {
    status.each("conditions", [&](const JsonReader& condition) {
        const std::string type = condition.text("type");
        const bool holds = condition.text("status") == "True";
        if (type == "Ready") {
            pod.ready = holds;
        } else if (type == "DisruptionTarget" && holds) {
            pod.disruption = condition.text("reason", "Disrupted");
        } else if (type == "PodScheduled" && !holds) {
            pod.unschedulable_message = condition.text("message");
        }
    });
}

// The node directories in the pod's volumes. One directory may be in several volumes, each a view
// of another of its folders.
std::vector<std::string> read_node_directories(const JsonReader& spec) {
    std::set<std::string> result;
    spec.each("volumes", [&](const JsonReader& volume) {
        const JsonReader csi = volume.object("csi");
        if (csi.text("driver") != kNodeDriver) {
            return;
        }
        const JsonReader attributes = csi.object("volumeAttributes");
        result.insert(attributes.text("namespace") + "/" + attributes.text("uid"));
    });
    return {result.begin(), result.end()};
}

bool is_ours(const std::string& key) {
    return key.starts_with("stoker.dev/");
}

// Tens of thousands of pods are in memory, and most of their texts are for other programs. The Job
// controller sets the rank also as an annotation; only the label is read.
void drop_unread(ObjectMeta& meta) {
    std::erase_if(meta.labels, [](const auto& entry) {
        const std::string& key = entry.first;
        return !is_ours(key) && key != kRankLabel && key != kJobNameLabel;
    });
    std::erase_if(meta.annotations, [](const auto& entry) { return !is_ours(entry.first); });
    meta.owners = {};
}

void read_pod(const JsonReader& root, Pod& pod) {
    drop_unread(pod.meta);
    pod.node_directories = read_node_directories(root.object("spec"));
    const JsonReader status = root.object("status");
    pod.phase = parse_phase(status.text("phase"));
    read_pod_conditions(status, pod);
    const std::string& written = value_or_empty(pod.meta.annotations, kContainerAnnotation);
    const std::string_view trainer = written.empty() ? kTrainerContainer : written;
    status.each("containerStatuses", [&](const JsonReader& container) {
        const std::string name = container.text("name");
        if (name == trainer || name == kPackContainer) {
            pod.trainer = read_container(container);
        } else if (name == kSidecarContainer) {
            pod.sidecar = read_container(container);  // of a filler
        }
    });
    status.each("initContainerStatuses", [&](const JsonReader& container) {
        const std::string name = container.text("name");
        if (name == kSidecarContainer) {
            pod.sidecar = read_container(container);
        } else if (name == kS3Container) {
            pod.s3 = read_container(container);
        } else if (name == kFilesContainer) {
            pod.files = read_container(container);
        }
    });
}

}  // namespace

template <>
inline constexpr auto kFields<Pod> =
    std::tuple{field("metadata", &Pod::meta), field("spec.nodeName", &Pod::node_name)};
template <>
inline constexpr auto kAlsoRead<Pod> = &read_pod;

template Result<Pod> read_document<Pod>(const Json& json);

bool has_ended(const Pod& pod) {
    return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

std::optional<std::int64_t> rank_of(const Pod& pod) {
    const std::string& written = value_or_empty(pod.meta.labels, kRankLabel);
    std::int64_t rank = 0;
    const char* end = written.data() + written.size();
    const auto parsed = std::from_chars(written.data(), end, rank);
    const bool whole = parsed.ec == std::errc{} && parsed.ptr == end;
    return whole && rank >= 0 ? std::optional(rank) : std::nullopt;
}

const std::string& job_name_of(const Pod& pod) {
    return value_or_empty(pod.meta.labels, kJobNameLabel);
}

}  // namespace stoker::control
