#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "node/core/view_request.h"
#include "node/disk/pool_directory.h"
#include "node/mount/mounts.h"
#include "node/service/file_session.h"

namespace stoker::node {

// The mounts of files on this node (docs/adr/0023-files-access.md), one for each pod and dataset, and the
// sockets by which each pod's stoker-files gets its mount's descriptor. Below its folder:
//
//   <pod uid>.<dataset uid>/  root's, 0700
//     files, server           the targets of the two views, while they are mounted
//     socket/                 the sidecars', 0700: the view files-server
//       files.sock            the sidecars', 0600
//
// This program keeps a mount's descriptor until the volume is unmounted, so that stoker-files may
// end and start again; without any connection, for `patience`. After a restart it opens the sockets
// again, and each stoker-files gives its descriptor back; if neither has one, the files are mounted
// anew. Thread-safe; one thread per session (file_session.h).
class FileMounts {
public:
    static constexpr std::size_t kSessionsOfAPodMax = 64;

    // Longer than the kubelet's longest pause between two starts of a container, five minutes.
    static constexpr Duration kPatience = std::chrono::minutes{6};

    // `folder`: created if missing; tenants must have no access to its parent. `mounts` must
    // outlive this object.
    FileMounts(std::string folder, SidecarUser user, Mounts& mounts, Duration patience = kPatience);
    FileMounts(const FileMounts&) = delete;
    FileMounts& operator=(const FileMounts&) = delete;
    // Sessions' threads close their descriptors shortly afterwards. A mount stays alive as long as
    // its stoker-files has the descriptor.
    ~FileMounts();

    // Opens the sockets that an earlier process has left, and removes sessions without volumes. Call
    // it once, before anything else. A socket that cannot be opened is logged.
    void restore();

    // Mounts the view kFiles or kFilesServer at `target`. Idempotent. kAlreadyExists: the pod shows
    // this dataset at another place already. kResourceExhausted: the pod has too many sessions.
    Status publish(const ViewRequest& request, const std::string& target);

    // Forgets `target`, and will not mount there any more; the caller unmounts it afterwards. Does
    // nothing for other targets.
    Status unpublish(const std::string& target);

private:
    // The volumes that belong to a session, and where they are mounted.
    struct Notes {
        std::optional<std::string> files;
        std::optional<std::string> server;
    };

    // Access of sessions to FileMounts, which they outlive by a moment.
    struct Owner {
        std::mutex calls;  // held by each call: notes, mounts and sessions change together
        FileMounts* mounts = nullptr;  // nullptr: FileMounts was destroyed
    };

    Status publish_files(const std::string& name, const std::string& target);
    Status publish_server(const std::string& name, const std::string& target);
    Status remount(const std::string& name, FileSession& session);
    Status forget(const std::string& name, Notes notes, const std::string& target);
    [[nodiscard]] Result<std::vector<std::string>> names() const;
    [[nodiscard]] Result<Notes> notes_of(const std::string& name) const;
    [[nodiscard]] Result<UniqueFd> make_session(const std::string& name) const;
    [[nodiscard]] Status check_room(const std::string& name) const;
    Status listen(const std::string& name);

    std::string folder_;
    SidecarUser user_;
    Mounts& mounts_;
    Duration patience_;
    std::shared_ptr<Owner> owner_;
    std::map<std::string, std::shared_ptr<FileSession>> sessions_;
};

}  // namespace stoker::node
