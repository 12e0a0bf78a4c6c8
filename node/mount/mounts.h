#pragma once

#include <memory>
#include <set>
#include <string>

#include "common/base/result.h"
#include "node/disk/pool_directory.h"

// Views in pods are mounts of folders of node directories.
namespace stoker::node {

enum class Access : std::uint8_t { kReadOnly, kReadWrite };

// The interface to the mount table. Thread-safe.
class Mounts {
public:
    virtual ~Mounts() = default;

    // Mounts the open folder `source` at `target`, whose last component is made where it is
    // missing. Nothing where something is mounted at `target` already.
    virtual Status mount(int source, const std::string& target, Access access) = 0;

    // Unmounts and removes `target`. Success also where there is nothing. Programs that have files
    // of it open keep them.
    virtual Status unmount(const std::string& target) = 0;

    // What this driver's volumes in pods on this node show, as the kubelet's folders say it.
    virtual Result<std::set<FileId>> mounted() = 0;
};

// The kernel's, for the kubelet whose folder is `kubelet_directory`. The driver is `driver`.
std::unique_ptr<Mounts> make_mounts(std::string kubelet_directory, std::string driver);

}  // namespace stoker::node
