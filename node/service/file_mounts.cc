#include "node/service/file_mounts.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <future>
#include <list>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/posix_error.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "node/disk/posix.h"
#include "proto/files/hand_over.h"

namespace stoker::node {

namespace {

using files::HandOver;
using files::HandOverKind;

constexpr const char* kFilesNote = "files";
constexpr const char* kServerNote = "server";
constexpr const char* kSocketFolder = "socket";
constexpr unsigned kFolderMode = 0700;
constexpr unsigned kSocketMode = 0600;
constexpr int kBacklog = 8;
constexpr std::size_t kConnectionsMax = 4;

std::string session_name(const ViewRequest& request) {
    return request.pod.uid + "." + request.directory.uid;
}

// A socket in the folder, which only its owner can connect to. An old one is replaced. The path goes
// over the descriptor, because a socket's path is short.
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

// One mount: its descriptor, if this process has it, and the connections of its stoker-files. For
// the loop's thread.
class FileMounts::Session {
public:
    Session(EventLoop& loop, UniqueFd listener)
        : loop_(loop),
          accepts_(loop, std::move(listener), "files", [this](UniqueFd socket) {
              adopt(std::move(socket));
          }) {}

    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    ~Session() {
        for (const UniqueFd& socket : connections_) {
            loop_.forget(socket.get());
        }
    }

    // Tells those who are connected already.
    void set_mount(UniqueFd mount) {
        mount_ = std::move(mount);
        for (const UniqueFd& socket : connections_) {
            [[maybe_unused]] const Status sent =
                files::send_hand_over(socket.get(), {HandOverKind::kMount, 0}, mount_.get());
        }
    }

    // While there is no mount yet, a stoker-files waits for its descriptor.
    void set_is_mounted(bool is_mounted) { is_mounted_ = is_mounted; }

private:
    using Place = std::list<UniqueFd>::iterator;

    // The oldest connection makes room: a stoker-files that was killed may still be counted.
    void adopt(UniqueFd socket) {
        while (connections_.size() >= kConnectionsMax) {
            drop(connections_.begin());
        }
        connections_.push_back(std::move(socket));
        const auto place = std::prev(connections_.end());
        loop_.watch(place->get(), [this, place](IoReady /*ready*/) { take(place); });
    }

    void drop(Place place) {
        loop_.forget(place->get());
        connections_.erase(place);
    }

    void take(Place place) {
        // A descriptor is wanted only while there is none: closing a stranger's may block.
        auto received = files::receive_hand_over(place->get(), !mount_.valid());
        if (!received || !answer(place->get(), *received)) {
            drop(place);
        }
    }

    Status answer(int socket, files::ReceivedHandOver& received) {
        if (received.message.kind == HandOverKind::kShows) {
            revision_ = received.message.revision;
            return {};
        }
        if (received.message.kind != HandOverKind::kHello) {
            return fail(ErrorCode::kInvalidArgument, "unexpected message");
        }
        if (mount_.valid()) {
            return files::send_hand_over(socket, {HandOverKind::kMount, revision_}, mount_.get());
        }
        if (received.descriptor.valid() && files::is_fuse_connection(received.descriptor.get())) {
            mount_ = std::move(received.descriptor);
            revision_ = received.message.revision;
            return files::send_hand_over(socket, {HandOverKind::kKept, revision_}, -1);
        }
        return is_mounted_ ? files::send_hand_over(socket, {HandOverKind::kLost, 0}, -1) : Status{};
    }

    EventLoop& loop_;
    UniqueFd mount_;
    bool is_mounted_ = false;
    std::uint64_t revision_ = 0;
    std::list<UniqueFd> connections_;  // oldest first
    AcceptLoop accepts_;
};

FileMounts::FileMounts(std::string folder, SidecarUser user, Mounts& mounts, const Clock& clock)
    : folder_(std::move(folder)),
      user_(user),
      mounts_(mounts),
      loop_(clock),
      thread_(start_thread("file-mounts", [this](const std::stop_token&) { loop_.run(); })) {}

FileMounts::~FileMounts() {
    loop_.stop();
    thread_.join();
}

Status FileMounts::on_loop(const std::function<Status()>& task) {
    std::promise<Status> done;
    loop_.post([&] { done.set_value(task()); });
    return done.get_future().get();
}

Result<UniqueFd> FileMounts::open_session(const std::string& name) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    UniqueFd top{::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!top.valid()) {
        return fail_errno("opening", folder_);
    }
    return make_folder(top.get(), name, kFolderMode);
}

Status FileMounts::listen(const std::string& name) {
    STOKER_TRY(const UniqueFd session, open_session(name));
    STOKER_TRY(const UniqueFd folder, make_folder(session.get(), kSocketFolder, kFolderMode));
    if (::fchown(folder.get(), user_.user, user_.group) != 0) {
        return fail_errno("handing over", kSocketFolder);
    }
    STOKER_TRY(const auto note, read_small_file(session.get(), kFilesNote));
    return on_loop([&]() -> Status {
        auto& known = sessions_[name];
        if (known == nullptr) {
            STOKER_TRY(UniqueFd listener, listen_in(folder.get(), user_));
            known = std::make_unique<Session>(loop_, std::move(listener));
            known->set_is_mounted(note.has_value());
        }
        return {};
    });
}

void FileMounts::restore() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{folder_, error}) {
        if (const Status listening = listen(entry.path().filename().string()); !listening) {
            log::warning(
                "files of a pod cannot be served",
                {{"session", entry.path().filename().string()},
                 {"error", listening.error().message}});
        }
    }
}

Status FileMounts::publish(const ViewRequest& request, const std::string& target) {
    const std::scoped_lock lock{calls_};
    const std::string name = session_name(request);
    STOKER_TRY_VOID(listen(name));
    return request.view == View::kFiles ? publish_files(name, target)
                                        : publish_server(name, target);
}

Status FileMounts::publish_files(const std::string& name, const std::string& target) {
    STOKER_TRY(const UniqueFd session, open_session(name));
    STOKER_TRY(const auto note, read_small_file(session.get(), kFilesNote));
    if (note && *note != target) {
        return fail(
            ErrorCode::kAlreadyExists,
            "the pod has another volume with the files of this dataset; mount that one twice");
    }
    STOKER_TRY_VOID(write_small_file(session.get(), kFilesNote, target));
    STOKER_TRY(auto mounted, mounts_.mount_files(target));
    return on_loop([&]() -> Status {
        sessions_[name]->set_is_mounted(true);
        if (mounted) {
            sessions_[name]->set_mount(*std::move(mounted));
        }
        return {};
    });
}

Status FileMounts::publish_server(const std::string& name, const std::string& target) {
    STOKER_TRY(const UniqueFd session, open_session(name));
    STOKER_TRY(const UniqueFd folder, open_folder(session.get(), kSocketFolder));
    STOKER_TRY_VOID(write_small_file(session.get(), kServerNote, target));
    return mounts_.mount(folder.get(), target, Access::kReadOnly);
}

Result<bool> FileMounts::remove_notes(int session, const std::string& target) {
    bool was_ours = false;
    bool is_used = false;
    for (const char* kind : {kFilesNote, kServerNote}) {
        STOKER_TRY(const auto note, read_small_file(session, kind));
        if (note == target) {
            was_ours = true;
            if (::unlinkat(session, kind, 0) != 0) {
                return fail_errno("removing", kind);
            }
        }
        is_used = is_used || (note && note != target);
    }
    return was_ours && !is_used;
}

Status FileMounts::unpublish(const std::string& target) {
    const std::scoped_lock lock{calls_};
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{folder_, error}) {
        const std::string name = entry.path().filename().string();
        STOKER_TRY(const UniqueFd session, open_session(name));
        STOKER_TRY(const bool is_over, remove_notes(session.get(), target));
        if (is_over) {
            STOKER_TRY_VOID(on_loop([&]() -> Status {
                sessions_.erase(name);
                return {};
            }));
            std::filesystem::remove_all(entry.path(), error);
        }
    }
    return {};
}

}  // namespace stoker::node
