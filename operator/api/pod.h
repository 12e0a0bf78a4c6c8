#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/document.h"
#include "operator/api/meta.h"

namespace stoker::control {

inline constexpr std::string_view kTrainerContainer = "trainer";
// On a pod of another controller: the container that reads, instead of kTrainerContainer.
inline constexpr const char* kContainerAnnotation = "stoker.dev/container";
inline constexpr std::string_view kSidecarContainer = "stoker-sidecar";
inline constexpr std::string_view kS3Container = "stoker-s3";
inline constexpr std::string_view kFilesContainer = "stoker-files";
inline constexpr std::string_view kPackContainer = "stoker-pack";
inline constexpr std::string_view kNodeDriver = "csi.stoker.dev";  // the node program's

enum class PodPhase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// One container's current state. At most one of waiting_reason and exit_code is set.
struct ContainerState {
    bool started = false;  // its startup probe has passed
    bool ready = false;
    std::int64_t restart_count = 0;
    std::string waiting_reason;  // "ImagePullBackOff", "CreateContainerConfigError", ...
    std::optional<std::int64_t> exit_code;
    std::string message;  // of waiting or terminated, as the kubelet wrote it
    std::string reason;   // of terminated: "OOMKilled", "Error", "Completed"

    bool operator==(const ContainerState&) const = default;
};

// The fields of a v1 Pod that the operator uses.
struct Pod {
    // Without owners, and with only the labels and annotations that the operator reads: tens of
    // thousands of pods are in memory.
    ObjectMeta meta;
    std::string node_name;  // empty until it is scheduled
    PodPhase phase = PodPhase::kUnknown;
    bool ready = false;
    std::string unschedulable_message;  // the scheduler's message while no node fits
    std::string disruption;             // the reason of DisruptionTarget, when it is True
    ContainerState trainer;             // in a packing Job's pod: stoker pack
    ContainerState sidecar;
    ContainerState s3;  // the S3 endpoint
    ContainerState files;
    // "<namespace>/<uid>" of its kNodeDriver volumes, sorted. Untrusted: the user may write any
    // text.
    std::vector<std::string> node_directories;

    bool operator==(const Pod&) const = default;
};

// Succeeded or Failed: none of its containers runs any more.
bool has_ended(const Pod& pod);

// The pod's completion index, its node rank; none for pods of other kinds.
std::optional<std::int64_t> rank_of(const Pod& pod);

// The name of the Job that made the pod, or an empty text.
const std::string& job_name_of(const Pod& pod);

}  // namespace stoker::control
