#include "node/service/file_mounts.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/posix_error.h"
#include "common/log/log.h"
#include "node/disk/posix.h"
#include "proto/files/hand_over.h"

namespace stoker::node {

namespace {

constexpr const char* kFilesNote = "files";
constexpr const char* kServerNote = "server";
constexpr const char* kSocketFolder = "socket";
constexpr unsigned kFolderMode = 0700;
constexpr unsigned kSocketMode = 0600;
constexpr int kBacklog = 8;

std::string session_name(const ViewRequest& request) {
    return request.pod.uid + "." + request.directory.uid;
}

// Makes a socket in the folder to which only `user` can connect; replaces an old one. Binds it by
// /proc/self/fd, because a socket's path has at most 107 bytes.
Result<UniqueFd> listen_in(int folder, SidecarUser user) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, files::kHandOverSocket);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::unlinkat(folder, files::kHandOverSocket, 0) != 0 && errno != ENOENT) {
        return fail_errno("removing", files::kHandOverSocket);
    }
    UniqueFd socket{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!socket.valid() ||
        ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::fchmodat(folder, files::kHandOverSocket, kSocketMode, 0) != 0 ||
        ::fchownat(folder, files::kHandOverSocket, user.user, user.group, AT_SYMLINK_NOFOLLOW) !=
            0 ||
        ::listen(socket.get(), kBacklog) != 0) {
        return fail_errno("listening at", files::kHandOverSocket);
    }
    return socket;
}

}  // namespace

FileMounts::FileMounts(std::string folder, SidecarUser user, Mounts& mounts, Duration patience)
    : folder_(std::move(folder)),
      user_(user),
      mounts_(mounts),
      patience_(patience),
      owner_(std::make_shared<Owner>()) {
    owner_->mounts = this;
}

FileMounts::~FileMounts() {
    const std::scoped_lock lock{owner_->calls};
    owner_->mounts = nullptr;
    for (const auto& [name, session] : sessions_) {
        session->end();
    }
}

Result<std::vector<std::string>> FileMounts::names() const {
    std::vector<std::string> result;
    const UniqueFd top{::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!top.valid()) {
        if (errno == ENOENT) {
            return result;
        }
        return fail_errno("opening", folder_);
    }
    STOKER_TRY_VOID(each_entry(top.get(), [&](const std::string& name, EntryKind kind) {
        if (kind == EntryKind::kFolder) {
            result.push_back(name);
        }
        return true;
    }));
    return result;
}

Result<FileMounts::Notes> FileMounts::notes_of(const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    const UniqueFd session{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!session.valid()) {
        return fail_errno("opening", path);
    }
    Notes result;
    STOKER_TRY(result.files, read_small_file(session.get(), kFilesNote));
    STOKER_TRY(result.server, read_small_file(session.get(), kServerNote));
    return result;
}

Result<UniqueFd> FileMounts::make_session(const std::string& name) const {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    UniqueFd top{::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!top.valid()) {
        return fail_errno("opening", folder_);
    }
    return make_folder(top.get(), name, kFolderMode);
}

Status FileMounts::check_room(const std::string& name) const {
    const std::string pod = name.substr(0, name.rfind('.') + 1);
    const auto count = std::ranges::count_if(
        sessions_, [&](const auto& session) { return session.first.starts_with(pod); });
    if (static_cast<std::size_t>(count) < kSessionsOfAPodMax) {
        return {};
    }
    return fail(
        ErrorCode::kResourceExhausted,
        fmt::format("the pod shows the files of {} datasets already", kSessionsOfAPodMax));
}

Status FileMounts::listen(const std::string& name) {
    if (sessions_.contains(name)) {
        return {};
    }
    STOKER_TRY_VOID(check_room(name));
    STOKER_TRY(const UniqueFd session, make_session(name));
    STOKER_TRY(const UniqueFd folder, make_folder(session.get(), kSocketFolder, kFolderMode));
    if (::fchown(folder.get(), user_.user, user_.group) != 0) {
        return fail_errno("handing over", kSocketFolder);
    }
    STOKER_TRY(const auto note, read_small_file(session.get(), kFilesNote));
    STOKER_TRY(UniqueFd listener, listen_in(folder.get(), user_));
    STOKER_TRY(
        sessions_[name],
        FileSession::start(
            std::move(listener),
            {note.has_value(), patience_, [owner = owner_, name](FileSession& asks) -> Status {
                 const std::scoped_lock lock{owner->calls};
                 return owner->mounts == nullptr ? Status{fail(ErrorCode::kCancelled, "stopping")}
                                                 : owner->mounts->remount(name, asks);
             }}));
    return {};
}

void FileMounts::restore() {
    const std::scoped_lock lock{owner_->calls};
    const auto left = names();
    if (!left) {
        log::error("files cannot be served", {{"error", left.error().message}});
        return;
    }
    for (const std::string& name : *left) {
        const auto notes = notes_of(name);
        if (notes && !notes->files && !notes->server) {
            std::error_code error;
            std::filesystem::remove_all(folder_ + "/" + name, error);
        } else if (const Status listening = listen(name); !listening) {
            log::warning(
                "files of a pod cannot be served",
                {{"session", name}, {"error", listening.error().message}});
        }
    }
}

Status FileMounts::publish(const ViewRequest& request, const std::string& target) {
    const std::scoped_lock lock{owner_->calls};
    const std::string name = session_name(request);
    STOKER_TRY_VOID(listen(name));
    return request.view == View::kFiles ? publish_files(name, target)
                                        : publish_server(name, target);
}

Status FileMounts::publish_files(const std::string& name, const std::string& target) {
    STOKER_TRY(const UniqueFd session, make_session(name));
    STOKER_TRY(const auto note, read_small_file(session.get(), kFilesNote));
    if (note && *note != target) {
        return fail(
            ErrorCode::kAlreadyExists,
            "the pod has another volume with the files of this dataset; mount that one twice");
    }
    STOKER_TRY_VOID(write_small_file(session.get(), kFilesNote, target));
    STOKER_TRY(auto mounted, mounts_.mount_files(target));
    sessions_[name]->set_mounted(std::move(mounted));
    return {};
}

Status FileMounts::publish_server(const std::string& name, const std::string& target) {
    STOKER_TRY(const UniqueFd session, make_session(name));
    STOKER_TRY(const UniqueFd folder, open_folder(session.get(), kSocketFolder));
    STOKER_TRY_VOID(write_small_file(session.get(), kServerNote, target));
    return mounts_.mount(folder.get(), target, Access::kReadOnly);
}

// Called when no process has the mount's descriptor any more: an earlier process of this program
// ended with it, or nobody served the mount for `patience` and it was closed.
Status FileMounts::remount(const std::string& name, FileSession& session) {
    const auto known = sessions_.find(name);
    if (known == sessions_.end() || known->second.get() != &session) {
        return fail(ErrorCode::kNotFound, "the session has ended");
    }
    if (session.is_mount_coming()) {
        return {};
    }
    STOKER_TRY(const Notes notes, notes_of(name));
    if (!notes.files) {
        return fail(ErrorCode::kNotFound, "the files are mounted no more");
    }
    STOKER_TRY_VOID(mounts_.unmount(*notes.files));
    STOKER_TRY(auto mounted, mounts_.mount_files(*notes.files));
    if (!mounted) {
        return fail(ErrorCode::kConflict, "another mount is in the way");
    }
    log::info("files mounted anew: nobody had their descriptor", {{"session", name}});
    session.set_mounted(std::move(mounted));
    return {};
}

Status FileMounts::forget(const std::string& name, Notes notes, const std::string& target) {
    const std::string path = folder_ + "/" + name;
    const auto remove = [&](std::optional<std::string>& note, const char* kind) -> Status {
        if (note == target) {
            note.reset();
            if (::unlink((path + "/" + kind).c_str()) != 0) {
                return fail_errno("removing", kind);
            }
        }
        return {};
    };
    STOKER_TRY_VOID(remove(notes.files, kFilesNote));
    STOKER_TRY_VOID(remove(notes.server, kServerNote));
    const auto known = sessions_.find(name);
    if (!notes.files && known != sessions_.end()) {
        known->second->set_unmounted();
    }
    if (notes.files || notes.server) {
        return {};
    }
    if (known != sessions_.end()) {
        known->second->end();
        sessions_.erase(known);
    }
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return {};
}

Status FileMounts::unpublish(const std::string& target) {
    const std::scoped_lock lock{owner_->calls};
    STOKER_TRY(const auto all, names());
    for (const std::string& name : all) {
        const auto notes = notes_of(name);
        if (!notes) {
            log::warning(
                "a session of files cannot be read",
                {{"session", name}, {"error", notes.error().message}});
        } else if (notes->files == target || notes->server == target) {
            STOKER_TRY_VOID(forget(name, *notes, target));
        }
    }
    return {};
}

}  // namespace stoker::node
