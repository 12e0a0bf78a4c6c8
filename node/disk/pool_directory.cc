#include "node/disk/pool_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/domain/host_path.h"
#include "node/core/pool_marker.h"
#include "node/disk/posix.h"
#include "node/disk/tree.h"

namespace stoker::node {

namespace {

constexpr unsigned kFolderMode = 0755;
constexpr unsigned kControlMode = 0700;
constexpr const char* kControl = "control";
constexpr const char* kData = "data";
constexpr const char* kGuests = "guests";
constexpr const char* kLock = "lock";
constexpr const char* kSegments = "segments";
constexpr std::uint64_t kMeasuredEntriesMax = 1'000'000;  // of one node directory
constexpr std::size_t kNamesToldMax = 5;

// The real path of an open folder, relative to `root`.
Result<std::string> host_path_of(int root, int folder) {
    const auto name_of = [](int fd) -> Result<std::string> {
        std::array<char, PATH_MAX> buffer{};
        const std::string link = fmt::format("/proc/self/fd/{}", fd);
        const ssize_t size = ::readlink(link.c_str(), buffer.data(), buffer.size());
        if (size < 0) {
            return fail(posix_error(errno, "resolving", link));
        }
        return std::string{buffer.data(), static_cast<std::size_t>(size)};
    };
    STOKER_TRY(const std::string top, name_of(root));
    STOKER_TRY(const std::string path, name_of(folder));
    const std::string prefix = top == "/" ? "" : top;
    return path.starts_with(prefix + "/") ? path.substr(prefix.size()) : std::string{"/"};
}

// Like mkdir -p. New folders belong to root.
Result<UniqueFd> make_host_folder(int root, const std::string& path) {
    auto opened = open_host_folder(root, path);
    if (opened || opened.error().code != ErrorCode::kNotFound) {
        return opened;
    }
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos || slash + 1 == path.size()) {
        return opened;
    }
    STOKER_TRY(
        const UniqueFd parent,
        slash == 0 ? open_host_folder(root, "/") : make_host_folder(root, path.substr(0, slash)));
    return make_folder(parent.get(), path.substr(slash + 1), kFolderMode);
}

bool has(int folder, const char* name, mode_t kind) {
    struct stat status {};

    return ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (status.st_mode & S_IFMT) == kind;
}

// Recognises a node directory by its name or by its data; root in a pod may have replaced any
// entry.
bool is_node_directory(int directory, const std::string& uid) {
    return is_dataset_uid(uid) || has(directory, kData, S_IFDIR);
}

bool is_old_layout(int directory) {
    return has(directory, kLock, S_IFREG) && has(directory, kSegments, S_IFDIR);
}

// True for a namespace's folder of Stoker 0.1: node directories and nothing else.
bool is_from_version_0_1(int top, const std::string& name) {
    const auto folder = open_folder(top, name);
    if (!folder) {
        return false;
    }
    std::size_t count = 0;
    bool all = true;
    const Status listed = each_entry(folder->get(), [&](const std::string& inner, EntryKind kind) {
        const auto directory = open_folder(folder->get(), inner);
        all = kind == EntryKind::kFolder && directory && is_old_layout(directory->get());
        ++count;
        return all;
    });
    return listed.has_value() && all && count > 0;
}

Status mark(int folder, const std::string& path, const std::string& pool) {
    std::vector<TopEntry> entries;
    STOKER_TRY_VOID(each_entry(folder, [&](const std::string& name, EntryKind kind) {
        entries.push_back({name, kind == EntryKind::kFolder && is_from_version_0_1(folder, name)});
        return true;
    }));
    std::vector<std::string> foreign = foreign_entries(entries);
    if (!foreign.empty()) {
        std::ranges::sort(foreign);
        const std::size_t told = std::min(foreign.size(), kNamesToldMax);
        return fail(
            ErrorCode::kAlreadyExists,
            fmt::format(
                "{} holds {} entries that are not Stoker's ({}{}); choose an empty directory",
                path,
                foreign.size(),
                fmt::join(
                    foreign.begin(), foreign.begin() + static_cast<std::ptrdiff_t>(told), ", "),
                told < foreign.size() ? ", ..." : ""));
    }
    return write_small_file(folder, std::string{kPoolMarkerFile}, format_marker(pool));
}

Status check_marker(int folder, const std::string& path, const std::string& pool) {
    STOKER_TRY(const auto text, read_small_file(folder, std::string{kPoolMarkerFile}));
    if (!text) {
        return mark(folder, path, pool);
    }
    const std::optional<std::string> owner = parse_marker(*text);
    if (owner != pool) {
        return fail(
            ErrorCode::kConflict,
            fmt::format(
                "{} belongs to CachePool {}; choose another directory, or remove its file {} when "
                "that pool is gone for good",
                path,
                owner.value_or("(unreadable)"),
                kPoolMarkerFile));
    }
    return {};
}

// Rejects a pool inside another one: it would be in a tenant's directory, or be swept with it.
Status check_outside_other_pools(int host_root, int folder, const std::string& path) {
    constexpr int kLevelsMax = 128;
    STOKER_TRY(const FileId top, file_id(host_root));
    UniqueFd at{::fcntl(folder, F_DUPFD_CLOEXEC, 0)};
    for (int level = 0; level < kLevelsMax; ++level) {
        STOKER_TRY(const FileId here, file_id(at.get()));
        if (here == top) {
            return {};
        }
        at.reset(::openat(at.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!at.valid()) {
            return fail(posix_error(errno, "looking above", path));
        }
        STOKER_TRY(const auto text, read_small_file(at.get(), std::string{kPoolMarkerFile}));
        if (text) {
            return fail(
                ErrorCode::kConflict,
                fmt::format(
                    "{} is inside the directory of CachePool {}; choose a directory outside of it",
                    path,
                    parse_marker(*text).value_or("(unreadable)")));
        }
    }
    return fail(ErrorCode::kInvalidArgument, path + " is too deep");
}

WallTime changed_at(int folder) {
    struct stat status {};

    if (::fstat(folder, &status) != 0) {
        return WallTime::max();  // young: keep it
    }
    return WallTime{std::chrono::seconds{status.st_mtim.tv_sec}};
}

// Takes the sidecar's lock until the descriptor is closed; nullopt while a sidecar holds it. A node
// directory that never had a sidecar has no lock file, and then no process can hold it. An entry
// that is not a plain file was made by a tenant: no sidecar locks it, and opening a device might
// have effects.
Result<std::optional<UniqueFd>> take_lock(int folder) {
    const UniqueFd found{::openat(folder, kLock, O_PATH | O_NOFOLLOW | O_CLOEXEC)};

    struct stat status {};

    if (!found.valid() && errno != ENOENT) {
        return fail(posix_error(errno, "opening", kLock));
    }
    if (!found.valid() || ::fstat(found.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return std::optional{UniqueFd{}};
    }
    const std::string path = fmt::format("/proc/self/fd/{}", found.get());
    UniqueFd lock{::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    if (!lock.valid()) {
        return fail(posix_error(errno, "opening", kLock));
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        return std::optional<UniqueFd>{};
    }
    return std::optional{std::move(lock)};
}

// Takes the lock of a node directory: in control/, or at the top (layout of Stoker 0.1).
Result<std::optional<UniqueFd>> take_directory_lock(int directory) {
    const auto control = open_folder(directory, kControl);
    return take_lock(control ? control->get() : directory);
}

// True if any view of `directory` is mounted.
bool is_mounted(int directory, const std::set<FileId>& mounted) {
    const auto contains = [&](int fd) {
        const auto id = file_id(fd);
        return id && mounted.contains(*id);
    };
    const auto data = open_folder(directory, kData);
    if (contains(directory) || (data && contains(data->get()))) {
        return true;
    }
    const auto guests = open_folder(directory, kGuests);
    bool found = false;
    const auto look = [&](const std::string& name, EntryKind /*kind*/) {
        const auto door = open_folder(guests->get(), name);
        found = door && contains(door->get());
        return !found;
    };
    // An unreadable list may hide a mount, so it counts as one.
    return guests && (!each_entry(guests->get(), look) || found);
}

}  // namespace

Result<FileId> file_id(int fd) {
    struct stat status {};

    if (::fstat(fd, &status) != 0) {
        return fail(posix_error(errno, "looking at", "a folder"));
    }
    return FileId{status.st_dev, status.st_ino};
}

Result<PoolDirectory> PoolDirectory::open(
    int host_root, const std::string& path, const std::string& pool, SidecarUser user) {
    const auto refuse = [&] {
        return fail(
            ErrorCode::kForbidden,
            fmt::format("{} is a system directory; choose a directory for the cache alone", path));
    };
    // Checked before the folder is created, and again after symbolic links are resolved.
    if (domain::is_system_path(path)) {
        return refuse();
    }
    STOKER_TRY(UniqueFd folder, make_host_folder(host_root, path));
    STOKER_TRY(const std::string real, host_path_of(host_root, folder.get()));
    if (domain::is_system_path(real)) {
        return refuse();
    }
    STOKER_TRY_VOID(check_outside_other_pools(host_root, folder.get(), path));
    STOKER_TRY_VOID(check_marker(folder.get(), path, pool));
    return PoolDirectory{std::move(folder), user};
}

// Uses descriptors, so that no name can be exchanged between the calls.
Status PoolDirectory::make_ours(int folder, const std::string& name, unsigned mode) const {
    STOKER_TRY(const UniqueFd made, make_folder(folder, name, mode));
    if (::fchown(made.get(), user_.user, user_.group) != 0 || ::fchmod(made.get(), mode) != 0) {
        return fail(posix_error(errno, "handing over", name));
    }
    return {};
}

Status PoolDirectory::clear_old_layout(int directory) const {
    if (!is_old_layout(directory)) {
        return {};
    }
    STOKER_TRY(const auto lock, take_lock(directory));
    if (!lock) {
        return fail(
            ErrorCode::kUnavailable,
            "a sidecar of Stoker 0.1 still uses this dataset's directory; the pod starts when it "
            "has ended");
    }
    STOKER_TRY_VOID(empty_tree(directory));
    if (::fchown(directory, ::geteuid(), ::getegid()) != 0 ||
        ::fchmod(directory, kFolderMode) != 0) {
        return fail(posix_error(errno, "taking over", "an old directory"));
    }
    return {};
}

Result<UniqueFd> PoolDirectory::view_source(const ViewRequest& request) const {
    const NodeDirectoryName& name = request.directory;
    STOKER_TRY(const UniqueFd ns, make_folder(folder_.get(), name.ns, kFolderMode));
    STOKER_TRY(UniqueFd directory, make_folder(ns.get(), name.uid, kFolderMode));
    STOKER_TRY_VOID(clear_old_layout(directory.get()));
    STOKER_TRY_VOID(make_ours(directory.get(), kControl, kControlMode));
    STOKER_TRY_VOID(make_ours(directory.get(), kData, kFolderMode));
    STOKER_TRY(const UniqueFd guests, make_folder(directory.get(), kGuests, kFolderMode));
    if (request.view == View::kOwner) {
        return directory;
    }
    if (request.view == View::kGuest) {
        STOKER_TRY_VOID(make_ours(guests.get(), request.pod.ns, kFolderMode));
        return open_folder(guests.get(), request.pod.ns);
    }
    return open_folder(directory.get(), kData);
}

Status PoolDirectory::each_directory(
    const std::function<void(const NodeDirectoryName& name, int directory)>& visit) const {
    return each_entry(folder_.get(), [&](const std::string& ns, EntryKind kind) {
        const auto folder = open_folder(folder_.get(), ns);
        if (kind != EntryKind::kFolder || !folder || !is_path_component(ns)) {
            return true;
        }
        // Ignore the error: a folder that cannot be listed now is retried next time.
        [[maybe_unused]] const Status listed =
            each_entry(folder->get(), [&](const std::string& uid, EntryKind inner) {
                const auto directory = open_folder(folder->get(), uid);
                if (inner == EntryKind::kFolder && directory && is_path_component(uid) &&
                    (is_node_directory(directory->get(), uid) || is_old_layout(directory->get()))) {
                    visit({ns, uid}, directory->get());
                }
                return true;
            });
        return true;
    });
}

Result<std::vector<DirectoryUse>> PoolDirectory::measure(const std::set<FileId>& mounted) const {
    std::vector<DirectoryUse> result;
    STOKER_TRY_VOID(each_directory([&](const NodeDirectoryName& name, int directory) {
        const auto use = measure_tree(directory, kMeasuredEntriesMax);
        result.push_back(
            {name, use ? use->allocated : Bytes::zero(), is_mounted(directory, mounted)});
    }));
    std::ranges::sort(result, {}, &DirectoryUse::name);
    return result;
}

Result<FileSystemUse> PoolDirectory::file_system() const {
    struct statvfs status {};

    if (::fstatvfs(folder_.get(), &status) != 0) {
        return fail(posix_error(errno, "asking for free space of", "the pool's directory"));
    }
    return FileSystemUse{
        Bytes{status.f_blocks * status.f_frsize}, Bytes{status.f_bavail * status.f_frsize}};
}

Result<bool> PoolDirectory::remove_unused(const NodeDirectoryName& name) const {
    STOKER_TRY(const UniqueFd ns, open_folder(folder_.get(), name.ns));
    STOKER_TRY(const UniqueFd directory, open_folder(ns.get(), name.uid));
    // Hold the lock during the removal.
    STOKER_TRY(const std::optional<UniqueFd> lock, take_directory_lock(directory.get()));
    if (!lock) {
        return false;
    }
    STOKER_TRY_VOID(empty_tree(directory.get()));
    if (::unlinkat(ns.get(), name.uid.c_str(), AT_REMOVEDIR) != 0) {
        return fail(posix_error(errno, "removing", name.uid));
    }
    // Remove the namespace's folder with its last node directory; until then it is not empty and
    // rmdir fails.
    ::unlinkat(folder_.get(), name.ns.c_str(), AT_REMOVEDIR);
    return true;
}

Result<SweepOutcome> PoolDirectory::sweep(
    const SweepRequest& request, const std::set<FileId>& mounted, WallTime now) const {
    std::vector<NodeDirectoryName> unused;
    STOKER_TRY_VOID(each_directory([&](const NodeDirectoryName& name, int directory) {
        const bool due =
            request.expired.contains(name.uid) || now - changed_at(directory) >= kYoung;
        if (due && !request.kept.contains(name) && !is_mounted(directory, mounted)) {
            unused.push_back(name);
        }
    }));
    SweepOutcome outcome;
    for (const NodeDirectoryName& name : unused) {
        const Result<bool> removed = remove_unused(name);
        if (!removed) {
            outcome.failures.push_back(
                fmt::format("{}/{}: {}", name.ns, name.uid, removed.error().message));
        } else if (*removed) {
            ++outcome.removed;
        }
    }
    return outcome;
}

}  // namespace stoker::node
