#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/base/result.h"
#include "node/disk/pool_directory.h"

// Mounts views: a view in a pod is a bind mount of a folder of a node directory.
namespace stoker::node {

enum class Access : std::uint8_t { kReadOnly, kReadWrite };

// The interface to the mount table. Thread-safe.
class Mounts {
public:
    virtual ~Mounts() = default;

    // Mounts the open folder `source` at `target`; creates the last component of `target` if it is
    // missing. Does nothing if `target` is a mount point already.
    virtual Status mount(int source, const std::string& target, Access access) = 0;

    // Mounts an empty FUSE file system at `target` (node/mount/fuse_mount.h); creates the last
    // component of the path. Returns the descriptor with which another process can serve it.
    // nullopt: `target` is a mount point already.
    virtual Result<std::optional<UniqueFd>> mount_files(const std::string& target) = 0;

    // Unmounts and removes `target`; succeeds if it does not exist. Programs keep their open files,
    // except on a mount of mount_files(), which ends at once: calls that wait for its server fail.
    virtual Status unmount(const std::string& target) = 0;

    // The folders that this driver's volumes show in pods on this node, from the kubelet's
    // directories.
    virtual Result<std::set<FileId>> mounted() = 0;
};

// The kernel's mount table, for the kubelet in `kubelet_directory`. `driver` is the CSI driver's
// name.
std::unique_ptr<Mounts> make_mounts(std::string kubelet_directory, std::string driver);

}  // namespace stoker::node
