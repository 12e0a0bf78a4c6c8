#include "operator/core/workload/foreign_checks.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "operator/api/pod.h"
#include "operator/core/spec/field_checks.h"
#include "operator/core/spec/validate.h"
#include "operator/core/workload/foreign_job.h"

namespace stoker::control {

namespace {

constexpr std::string_view kOurVolumes = "stoker-";

// Before the webhook's first call all volumes are the user's own.
Status check_volumes(const ForeignPod& pod) {
    const auto taken = std::ranges::find_if(
        pod.volume_names, [](const std::string& name) { return name.starts_with(kOurVolumes); });
    if (is_injected(pod) || taken == pod.volume_names.end()) {
        return {};
    }
    return refuse(fmt::format(
        "volume {} of the pod: names that begin with stoker- are set by Stoker; choose another "
        "name",
        *taken));
}

// Paths at which the container mounts the user's volumes.
std::vector<std::string> own_mount_paths(const ForeignPod& pod, const ForeignContainer& container) {
    std::vector<std::string> paths;
    for (const ForeignMount& mount : container.mounts) {
        if (!is_injected(pod) || !mount.volume.starts_with(kOurVolumes)) {
            paths.push_back(mount.path);
        }
    }
    return paths;
}

bool is_shown_as_files(const JobDataset& dataset) {
    return dataset.access == DatasetAccess::kFiles;
}

}  // namespace

tl::unexpected<Error> refuse(std::string message) {
    return fail(ErrorCode::kInvalidArgument, std::move(message));
}

bool is_injected(const ForeignPod& pod) {
    return pod.meta.annotations.contains(kWorkloadAnnotation) &&
           std::ranges::count(pod.init_container_names, kSidecarContainer) > 0;
}

Status check_pod(const ForeignPod& pod) {
    if (reader_of(pod) == nullptr) {
        return refuse(fmt::format(
            "annotation {} names no container of the pod: '{}'",
            kContainerAnnotation,
            value_or_empty(pod.meta.annotations, kContainerAnnotation)));
    }
    if (pod.host_network) {
        return refuse(
            "the pod has hostNetwork, so other pods of the node would reach its S3 endpoint; pods "
            "with a network of their own can have a cache");
    }
    if (pod.host_pid || pod.share_process_namespace) {
        return refuse(
            "the pod shares processes (hostPID or shareProcessNamespace), so its containers would "
            "reach the sidecar's; leave them out to have a cache");
    }
    return check_volumes(pod);
}

Status check_job(const ForeignPod& pod, TrainingJob job) {
    if (!pod.host_users && std::ranges::any_of(job.spec.datasets, is_shown_as_files)) {
        return refuse(
            "the pod has hostUsers: false, and the mount of the files cannot have other user ids; "
            "leave hostUsers out, or use access S3 or SDK");
    }
    job.spec.pod_template.trainer.volume_mount_paths = own_mount_paths(pod, *reader_of(pod));
    const std::vector<FieldError> errors = validate(job);
    return errors.empty() ? Status{} : Status{refuse(to_string(errors))};
}

}  // namespace stoker::control
