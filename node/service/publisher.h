#pragma once

#include <map>
#include <string>

#include "common/base/result.h"
#include "node/core/view_request.h"
#include "node/disk/pool_directory.h"
#include "node/mount/mounts.h"
#include "node/service/cluster_facts.h"
#include "node/service/file_mounts.h"

namespace stoker::node {

// Mounts views into pods. A pod may have these views:
//
//   pod's namespace                  data   owner   shared   guest   files, files-server
//   the dataset's own                yes    yes     yes      no      yes
//   admitted by Dataset.spec.sharing yes    no      yes      yes     yes
//   any other                        no     no      no       no      no
//
// The views files and files-server show only what the pod's own stoker-files serves.
//
// Asks the API server about the sharing on every mount. An ephemeral container, an init container
// or an exec gets no more than its namespace may have. Thread-safe; calls block on the API server
// and the disk. All parts must outlive this object.
class Publisher {
public:
    struct Parts {
        ClusterFacts& facts;
        Mounts& mounts;
        FileMounts& files;
        int host_root;  // descriptor of the host's root folder
        SidecarUser user;
    };

    explicit Publisher(Parts parts)
        : parts_(parts) {}

    // Mounts the volume's view at `target`. Idempotent. Error messages are for the pod's events and
    // say how to fix the problem: kInvalidArgument, kForbidden, kNotFound, kUnavailable, and the
    // errors of PoolDirectory::open().
    Status publish(
        const std::map<std::string, std::string>& context,
        bool read_only,
        const std::string& target);

    // Unmounts the view at `target`. Idempotent; needs neither the API server nor the pool.
    Status unpublish(const std::string& target);

private:
    Parts parts_;
};

}  // namespace stoker::node
