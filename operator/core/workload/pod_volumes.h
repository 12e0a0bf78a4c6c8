#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/core/workload/build_job.h"

// Volumes of a training pod, and which container mounts which of them where. Pure. Part of
// build_pod().
namespace stoker::control {

// False: no sidecar and no node directory.
bool has_cache(const JobInput& input);

// Whether the Dataset belongs to another namespace. The Dataset's Secret is in that namespace, too;
// to sign S3 requests the pod uses the Secret of the same name in its own namespace, if it exists.
bool is_foreign(const JobInput& input, const ResolvedDataset& dataset);

// Whether the pod reads the origin with a Secret. Never for another namespace's web server, which
// would get a token or password of this one. (A signature for S3 does not reveal its key.)
bool uses_secret(const JobInput& input, const ResolvedDataset& dataset);

// Whether the origin is a directory on a volume, not an object store.
bool is_directory(const ResolvedDataset& dataset);

// "<directory>/<name>".
std::string path_of(std::string_view directory, const std::string& name);

// The sidecar sees the whole node directory of a dataset, the trainer only its samples, at the same
// path. A guest's sidecar sees the samples and its own folder for the leader's socket.
std::vector<MountManifest> sidecar_mounts(const JobInput& input);
std::vector<MountManifest> trainer_mounts(const JobInput& input);

// The S3 endpoint sees the samples as the trainer does, and the origin's credentials and
// certificates as the sidecar does.
std::vector<MountManifest> s3_mounts(const JobInput& input);

// stoker-files sees what the S3 endpoint sees, and the sockets of its datasets' mounts.
std::vector<MountManifest> files_mounts(const JobInput& input);

// The socket by which stoker-files gets a dataset's mount; empty: the dataset is not shown as files.
std::string files_socket(const JobInput& input, const ResolvedDataset& dataset);

// Whether the trainer sees a dataset as files, or all of them: then it needs no key, because
// stoker-files reads the origin.
bool has_files(const JobInput& input);
bool has_only_files(const JobInput& input);

std::vector<VolumeManifest> build_volumes(const JobInput& input);

}  // namespace stoker::control
