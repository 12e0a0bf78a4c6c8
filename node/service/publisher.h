#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/base/result.h"
#include "node/core/view_request.h"
#include "node/disk/pool_directory.h"
#include "node/mount/mounts.h"
#include "node/service/cluster_facts.h"

namespace stoker::node {

// Puts views into pods. The views:
//
//   pod's namespace                  data   owner   shared   guest
//   the dataset's own                yes    yes     yes      no
//   admitted by Dataset.spec.sharing yes    no      yes      yes
//   any other                        no     no      no       no
//
// The API server is asked about the sharing each time.
// So an ephemeral container, an init container or an exec gets no more than what its namespace has.
// Thread-safe; calls block on the API server and the disk. All parts must outlive it.
class Publisher {
public:
    struct Parts {
        ClusterFacts& facts;
        Mounts& mounts;
        int host_root;  // an open folder
        SidecarUser user;
    };

    explicit Publisher(Parts parts)
        : parts_(parts) {}

    // Mounts what the volume asks for at `target`. Repeatable. Errors say, in the words that people
    // find in the pod's events, what to do: kInvalidArgument, kForbidden, kNotFound, kUnavailable,
    // and those of PoolDirectory::open().
    Status publish(
        const std::map<std::string, std::string>& context,
        bool read_only,
        const std::string& target);

    // Repeatable; needs neither the API server nor the pool.
    Status unpublish(const std::string& target);

private:
    Parts parts_;
};

}  // namespace stoker::node
