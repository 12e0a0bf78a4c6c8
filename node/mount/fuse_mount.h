#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::node {

inline constexpr const char* kFilesType = "fuse.stoker";  // in the mount table

// Mounts an empty read-only FUSE file system at `target`, an existing folder, and returns its
// descriptor, which another process can serve: the kernel's first request (INIT) and its first look
// at the root, which the kubelet takes before that process exists, are answered. The root's
// attributes stay valid, so that looking at the mount point never waits for that process.
// Takes milliseconds. On an error nothing stays mounted. kNotFound, kForbidden: no FUSE device.
Result<UniqueFd> mount_fuse(const std::string& target);

}  // namespace stoker::node
