#include "operator/core/workload/pod_volumes.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/domain/http_uri.h"
#include "operator/api/pod.h"
#include "operator/core/workload/build_pod.h"

namespace stoker::control {

namespace {

constexpr std::string_view kNodeVolume = "stoker-node";    // the whole node directory
constexpr std::string_view kDataVolume = "stoker-data";    // the directory's samples
constexpr std::string_view kGuestVolume = "stoker-guest";  // folder of the leader's socket for
                                                           // guests
constexpr std::string_view kFilesVolume = "stoker-files";  // the samples as files
constexpr std::string_view kFilesServerVolume = "stoker-files-server";
constexpr std::string_view kFilesServerDirectory = "/stoker/files";
constexpr std::string_view kFilesSocket = "files.sock";  // kHandOverSocket, proto/files/hand_over.h
constexpr std::string_view kRunVolume = "stoker-run";
constexpr std::string_view kTokenVolume = "stoker-token";
constexpr std::string_view kOriginVolume = "stoker-origin";
constexpr std::string_view kCredentialsVolume = "stoker-credentials";
constexpr std::string_view kCaVolume = "stoker-ca";
constexpr std::string_view kNoTokenVolume = "stoker-no-token";
constexpr std::string_view kSharedMemoryVolume = "stoker-shm";
constexpr std::string_view kSharedMemoryPath = "/dev/shm";
constexpr std::string_view kApiTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";

using Mounts = std::vector<MountManifest>;

// Datasets are numbered in volume names, because their own names may be too long for that.
std::string numbered_volume(
    std::string_view prefix, const JobInput& input, const ResolvedDataset& dataset) {
    return fmt::format("{}-{}", prefix, &dataset - input.datasets.data());
}

// Mounts origins that are directories, and the certificates of other origins.
void add_origin_mounts(const JobInput& input, Mounts& mounts) {
    for (const ResolvedDataset& dataset : input.datasets) {
        if (is_directory(dataset)) {
            mounts.push_back(
                {numbered_volume(kOriginVolume, input, dataset),
                 path_of(kOriginDirectory, dataset.name)});
        }
        if (dataset.source.ca_bundle) {
            mounts.push_back(
                {numbered_volume(kCaVolume, input, dataset), path_of(kCaDirectory, dataset.name)});
        }
    }
}

void add_node_mounts(const JobInput& input, bool is_sidecar, Mounts& mounts) {
    if (!has_cache(input)) {
        return;
    }
    for (const ResolvedDataset& dataset : input.datasets) {
        const std::string path = path_of(kNodeDirectory, dataset.name);
        const bool foreign = is_foreign(input, dataset);
        if (is_sidecar && !foreign) {
            mounts.push_back({numbered_volume(kNodeVolume, input, dataset), path, false});
            continue;
        }
        mounts.push_back({numbered_volume(kDataVolume, input, dataset), path + "/data"});
        if (is_sidecar) {
            mounts.push_back({numbered_volume(kGuestVolume, input, dataset), path + "/guests"});
        }
    }
}

// Stoker adds no shared memory to a pod of another controller.
bool adds_shared_memory(const JobInput& input) {
    const std::vector<std::string>& paths = input.job.spec.pod_template.trainer.volume_mount_paths;
    return !input.foreign &&
           std::find(paths.begin(), paths.end(), kSharedMemoryPath) == paths.end();
}

// The origins' keys, and an empty folder over the path of the trainer's ServiceAccount token.
void add_credential_mounts(const JobInput& input, Mounts& mounts) {
    for (const ResolvedDataset& dataset : input.datasets) {
        if (uses_secret(input, dataset)) {
            mounts.push_back(
                {numbered_volume(kCredentialsVolume, input, dataset),
                 path_of(kCredentialsDirectory, dataset.name)});
        }
    }
    if (input.job.spec.pod_template.automount_service_account_token.value_or(false)) {
        mounts.push_back({std::string{kNoTokenVolume}, std::string{kApiTokenPath}});
    }
}

VolumeManifest build_origin_volume(const JobInput& input, const ResolvedDataset& dataset) {
    const SourceVolume volume = dataset.source.volume.value_or(SourceVolume{});
    VolumeManifest result;
    result.name = numbered_volume(kOriginVolume, input, dataset);
    if (volume.claim_name) {
        result.source = ClaimVolume{*volume.claim_name, true};
    } else {
        result.source = HostPathVolume{volume.host_path.value_or("")};
    }
    return result;
}

// A view of a node directory (node/core/view_request.h reads the attributes).
CsiVolume view_of(
    const JobInput& input, const ResolvedDataset& dataset, std::string_view view, bool read_only) {
    CsiVolume result{std::string{kNodeDriver}, read_only, {}};
    result.attributes = {
        {"pool", input.pool.name},
        {"namespace", dataset.ns},
        {"uid", dataset.uid},
        {"view", std::string{view}}};
    if (!dataset.object_name.empty()) {
        result.attributes["dataset"] = dataset.object_name;
    }
    return result;
}

std::string files_server_path(const ResolvedDataset& dataset) {
    return path_of(kFilesServerDirectory, dataset.name);
}

bool is_shown_as_files(const JobInput& input, const ResolvedDataset& dataset) {
    return has_cache(input) && dataset.access == DatasetAccess::kFiles;
}

void add_views(const JobInput& input, std::vector<VolumeManifest>& volumes) {
    for (const ResolvedDataset& dataset : input.datasets) {
        const bool foreign = is_foreign(input, dataset);
        volumes.push_back(
            foreign ? VolumeManifest{
                          numbered_volume(kGuestVolume, input, dataset),
                          view_of(input, dataset, "guest", true)}
                    : VolumeManifest{
                          numbered_volume(kNodeVolume, input, dataset),
                          view_of(input, dataset, "owner", false)});
        volumes.push_back(
            {numbered_volume(kDataVolume, input, dataset),
             view_of(input, dataset, foreign ? "shared" : "data", true)});
        if (is_shown_as_files(input, dataset)) {
            volumes.push_back(
                {numbered_volume(kFilesVolume, input, dataset),
                 view_of(input, dataset, "files", true)});
            volumes.push_back(
                {numbered_volume(kFilesServerVolume, input, dataset),
                 view_of(input, dataset, "files-server", true)});
        }
    }
}

}  // namespace

bool has_cache(const JobInput& input) {
    return !input.pool.name.empty();
}

std::string path_of(std::string_view directory, const std::string& name) {
    return fmt::format("{}/{}", directory, name);
}

bool is_foreign(const JobInput& input, const ResolvedDataset& dataset) {
    return dataset.ns != input.job.meta.ns;
}

bool uses_secret(const JobInput& input, const ResolvedDataset& dataset) {
    const DatasetSource& source = dataset.source;
    return source.secret_ref &&
           !(domain::is_http_uri(source.storage_uri) && is_foreign(input, dataset));
}

bool is_directory(const ResolvedDataset& dataset) {
    return dataset.source.volume.has_value();
}

std::vector<MountManifest> sidecar_mounts(const JobInput& input) {
    Mounts result = {
        {std::string{kRunVolume}, std::string{kRunDirectory}, false},
        {std::string{kTokenVolume}, std::string{kTokenDirectory}}};
    add_credential_mounts(input, result);
    add_node_mounts(input, true, result);
    add_origin_mounts(input, result);
    return result;
}

std::vector<MountManifest> s3_mounts(const JobInput& input) {
    Mounts result = {{std::string{kRunVolume}, std::string{kRunDirectory}}};
    add_credential_mounts(input, result);
    add_node_mounts(input, false, result);
    add_origin_mounts(input, result);
    return result;
}

std::vector<MountManifest> files_mounts(const JobInput& input) {
    Mounts result = s3_mounts(input);
    for (const ResolvedDataset& dataset : input.datasets) {
        if (is_shown_as_files(input, dataset)) {
            result.push_back(
                {numbered_volume(kFilesServerVolume, input, dataset), files_server_path(dataset)});
        }
    }
    return result;
}

std::string files_socket(const JobInput& input, const ResolvedDataset& dataset) {
    return is_shown_as_files(input, dataset)
               ? path_of(files_server_path(dataset), std::string{kFilesSocket})
               : "";
}

bool has_files(const JobInput& input) {
    return std::ranges::any_of(
        input.datasets, [&](const auto& dataset) { return is_shown_as_files(input, dataset); });
}

bool has_only_files(const JobInput& input) {
    return std::ranges::all_of(
        input.datasets, [&](const auto& dataset) { return is_shown_as_files(input, dataset); });
}

std::vector<MountManifest> trainer_mounts(const JobInput& input) {
    Mounts result;
    if (has_cache(input)) {
        // Read-only access is enough to connect to a socket.
        result.push_back({std::string{kRunVolume}, std::string{kRunDirectory}});
    }
    add_node_mounts(input, false, result);
    for (const ResolvedDataset& dataset : input.datasets) {
        if (is_shown_as_files(input, dataset)) {
            result.push_back({numbered_volume(kFilesVolume, input, dataset), dataset.mount_path});
        }
    }
    add_origin_mounts(input, result);
    if (adds_shared_memory(input)) {
        result.push_back({std::string{kSharedMemoryVolume}, std::string{kSharedMemoryPath}, false});
    }
    return result;
}

std::vector<VolumeManifest> build_volumes(const JobInput& input) {
    std::vector<VolumeManifest> result;
    if (has_cache(input)) {
        add_views(input, result);
        result.push_back({std::string{kRunVolume}, EmptyDirVolume{}});
        result.push_back({std::string{kTokenVolume}, TokenVolume{std::string{kTokenAudience}}});
        for (const ResolvedDataset& dataset : input.datasets) {
            if (uses_secret(input, dataset)) {
                result.push_back(
                    {numbered_volume(kCredentialsVolume, input, dataset),
                     SecretVolume{*dataset.source.secret_ref, is_foreign(input, dataset)}});
            }
        }
        if (input.job.spec.pod_template.automount_service_account_token.value_or(false)) {
            result.push_back({std::string{kNoTokenVolume}, EmptyDirVolume{}});
        }
    }
    for (const ResolvedDataset& dataset : input.datasets) {
        if (is_directory(dataset)) {
            result.push_back(build_origin_volume(input, dataset));
        }
        if (dataset.source.ca_bundle) {
            result.push_back(
                {numbered_volume(kCaVolume, input, dataset),
                 BundleVolume{*dataset.source.ca_bundle, is_foreign(input, dataset)}});
        }
    }
    if (adds_shared_memory(input)) {
        result.push_back(
            {std::string{kSharedMemoryVolume},
             EmptyDirVolume{true, input.settings.shared_memory_size}});
    }
    return result;
}

}  // namespace stoker::control
