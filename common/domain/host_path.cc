#include "common/domain/host_path.h"

#include <algorithm>
#include <array>

namespace stoker::domain {

namespace {

// Trees that pools must not use: these folders and everything below them.
constexpr std::array<std::string_view, 34> kTrees = {
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt/cni",
    "/opt/containerd",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/crio",
    "/var/lib/docker",
    "/var/lib/dpkg",
    "/var/lib/etcd",
    "/var/lib/k0s",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/lib/rpm",
    "/var/lib/systemd",
    "/var/lock",
    "/var/log",
    "/var/run",
    "/var/snap",
    "/var/spool"};

// Folders that pools must not use; folders below them are allowed.
constexpr std::array<std::string_view, 11> kFolders = {
    "/",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/srv",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/tmp"};

bool is_at_or_below(std::string_view path, std::string_view tree) {
    return path.starts_with(tree) && (path.size() == tree.size() || path[tree.size()] == '/');
}

}  // namespace

bool is_system_path(std::string_view path) {
    return path.empty() || path.front() != '/' || std::ranges::count(kFolders, path) > 0 ||
           std::ranges::any_of(
               kTrees, [&](std::string_view tree) { return is_at_or_below(path, tree); });
}

}  // namespace stoker::domain
