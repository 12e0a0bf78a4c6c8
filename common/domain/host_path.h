#pragma once

#include <string_view>

namespace stoker::domain {

// True for a host path of the system or of Kubernetes, which a pool must not use: "/", "/etc",
// "/var/lib/kubelet/pods". `path` is absolute and has no symbolic links. The CachePool CRD has the
// same list, and a test compares the two. Pure.
bool is_system_path(std::string_view path);

}  // namespace stoker::domain
