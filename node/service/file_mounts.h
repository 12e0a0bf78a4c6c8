#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/runtime/accept_loop.h"
#include "common/runtime/event_loop.h"
#include "node/core/view_request.h"
#include "node/disk/pool_directory.h"
#include "node/mount/mounts.h"

namespace stoker::node {

// The mounts of files on this node (docs/adr/0023-files-access.md), one for each pod and dataset, and the
// sockets by which each pod's stoker-files gets its mount's descriptor. Below its folder:
//
//   <pod uid>.<dataset uid>/  root's, 0700
//     files, server           the targets of the two views, while they are mounted
//     socket/                 the sidecars', 0700: the view files-server
//       files.sock            the sidecars', 0600
//
// A descriptor is kept here until the volume is unmounted, so that stoker-files may end and start
// again. After a restart of this program the sockets are back, and each stoker-files gives its
// descriptor back. Thread-safe; one thread of its own for the sockets.
class FileMounts {
public:
    // `folder`: created if it is missing; its parent is not for tenants. `mounts` and `clock` must
    // outlive this object.
    FileMounts(std::string folder, SidecarUser user, Mounts& mounts, const Clock& clock);
    FileMounts(const FileMounts&) = delete;
    FileMounts& operator=(const FileMounts&) = delete;
    // Closes the descriptors; mounts live on as long as their stoker-files does.
    ~FileMounts();

    // Opens the sockets that an earlier process has left. Call it once, before anything else. A
    // socket that cannot be opened is logged.
    void restore();

    // Mounts the view kFiles or kFilesServer at `target`. Idempotent. kAlreadyExists: the pod shows
    // this dataset at another place already.
    Status publish(const ViewRequest& request, const std::string& target);

    // Forgets `target`, which is unmounted. Does nothing for other targets.
    Status unpublish(const std::string& target);

private:
    class Session;

    // Removes the notes of `target` in a session; true: it had one, and now has none at all.
    static Result<bool> remove_notes(int session, const std::string& target);
    Status publish_files(const std::string& name, const std::string& target);
    Status publish_server(const std::string& name, const std::string& target);
    Result<UniqueFd> open_session(const std::string& name);
    // Runs a task on the thread of the sockets and waits for its result.
    Status on_loop(const std::function<Status()>& task);
    Status listen(const std::string& name);

    std::string folder_;
    SidecarUser user_;
    Mounts& mounts_;
    std::mutex calls_;  // held by publish() and unpublish(): notes and sessions change together
    EventLoop loop_;
    std::map<std::string, std::unique_ptr<Session>> sessions_;  // used by the loop's thread
    std::jthread thread_;
};

}  // namespace stoker::node
