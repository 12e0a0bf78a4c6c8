#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "node/core/view_request.h"

// The directory of one pool on this node:
//
//   .stoker-pool                 marker with the pool's name; without it nothing is changed
//   <namespace>/                 root's, 0755
//     <dataset uid>/             root's, 0755: a node directory; tenants can replace nothing in it
//       control/                 the sidecars', 0700: lock, sockets, state
//       data/                    the sidecars', 0755: manifest, residency table, segments
//       guests/                  root's, 0755
//         <namespace>/           the sidecars', 0755: the leader's socket for that namespace
namespace stoker::node {

// The user and group of sidecars.
struct SidecarUser {
    uid_t user = 65532;
    gid_t group = 65532;
};

// Identifies a file or folder; the same for the folder and for every mount of it.
struct FileId {
    dev_t device = 0;
    ino_t inode = 0;

    auto operator<=>(const FileId&) const = default;
};

Result<FileId> file_id(int fd);

struct DirectoryUse {
    NodeDirectoryName name;
    Bytes allocated{};
    bool mounted = false;
};

struct FileSystemUse {
    Bytes capacity{};
    Bytes free{};
};

struct SweepRequest {
    std::set<NodeDirectoryName> kept;
    std::set<std::string> expired;  // uids of datasets whose directories are removed at any age
};

struct SweepOutcome {
    std::uint64_t removed = 0;
    std::vector<std::string> failures;  // for people, one per directory
};

// Thread-safe: methods work on the file system and keep no state in memory.
class PoolDirectory {
public:
    static constexpr Duration kYoung = std::chrono::hours{1};

    // Opens the pool's directory at `path` below `host_root` (an open folder). Creates it if it is
    // missing, and marks it if it is new, empty, or holds nothing but node directories of Stoker
    // 0.1. kForbidden: a system path. kAlreadyExists: it has files that are not Stoker's; the
    // message names some, and nothing was changed. kConflict: it is marked for another pool; the
    // message names it.
    static Result<PoolDirectory> open(
        int host_root, const std::string& path, const std::string& pool, SidecarUser user);

    // Opens the folder for a view; creates it if missing. Removes files of Stoker 0.1 from the node
    // directory. kUnavailable: a sidecar of Stoker 0.1 still uses it.
    [[nodiscard]] Result<UniqueFd> view_source(const ViewRequest& request) const;

    // Measures every node directory. `mounted`: the folders that are mounted into pods now.
    [[nodiscard]] Result<std::vector<DirectoryUse>> measure(const std::set<FileId>& mounted) const;

    [[nodiscard]] Result<FileSystemUse> file_system() const;

    // Removes node directories that are not kept, not mounted, not locked by a sidecar and at least
    // an hour old (docs/adr/0004). Entries that do not look like a node directory stay. `now` is
    // compared with time stamps of the file system.
    [[nodiscard]] Result<SweepOutcome> sweep(
        const SweepRequest& request, const std::set<FileId>& mounted, WallTime now) const;

private:
    PoolDirectory(UniqueFd folder, SidecarUser user)
        : folder_(std::move(folder)),
          user_(user) {}

    [[nodiscard]] Status make_ours(int folder, const std::string& name, unsigned mode) const;
    [[nodiscard]] Status clear_old_layout(int directory) const;
    [[nodiscard]] Status each_directory(
        const std::function<void(const NodeDirectoryName& name, int directory)>& visit) const;
    // Removes one node directory. False: a sidecar holds its lock, so it stays.
    [[nodiscard]] Result<bool> remove_unused(const NodeDirectoryName& name) const;

    UniqueFd folder_;
    SidecarUser user_;
};

}  // namespace stoker::node
