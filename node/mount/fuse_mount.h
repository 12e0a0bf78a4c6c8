#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::node {

inline constexpr const char* kFilesType = "fuse.stoker";  // type shown in the mount table

// Mounts an empty read-only FUSE file system at `target`, an existing folder, and returns its
// descriptor, with which another process can serve it. Answers INIT, the kernel's first request,
// and the root's first GETATTR, because the kubelet looks at the mount before that process exists.
// The root's attributes stay valid, so looking at the mount never waits for that process. Takes
// milliseconds. On an error nothing stays mounted. kNotFound, kForbidden: no FUSE device.
Result<UniqueFd> mount_fuse(const std::string& target);

}  // namespace stoker::node
