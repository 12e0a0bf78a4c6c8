#pragma once

#include <string_view>

namespace stoker::domain {

// Whether a path on the host belongs to the system or to Kubernetes, so that no pool may be there:
// "/", "/etc", "/var/lib/kubelet/pods". `path` is absolute and has no symbolic links. The CRD of
// CachePool has the same list, and a test compares the two. Pure.
bool is_system_path(std::string_view path);

}  // namespace stoker::domain
