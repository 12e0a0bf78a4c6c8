#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::node {

inline constexpr const char* kFilesType = "fuse.stoker";  // in the mount table

// Mounts an empty read-only FUSE file system at `target`, an existing folder, and returns its
// descriptor, by which another process can serve it. Answers INIT, the kernel's first request, and
// the first GETATTR of the root, because the kubelet looks at the mount before that process exists.
// The root's attributes stay valid, so looking at the mount point never waits for the process.
// Takes milliseconds. On an error nothing stays mounted. kNotFound, kForbidden: no FUSE device.
Result<UniqueFd> mount_fuse(const std::string& target);

}  // namespace stoker::node
