#include "sidecar/files/mount_link.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/posix_error.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "proto/files/hand_over.h"

namespace stoker::files {

namespace {

constexpr std::chrono::milliseconds kPollPause{200};  // limits the delay of a stop
constexpr int kPausePolls = 5;

}  // namespace

MountLink::MountLink(std::string socket_path, OnMount on_mount)
    : socket_path_(std::move(socket_path)),
      on_mount_(std::move(on_mount)),
      thread_(start_thread("mount-link", [this](const std::stop_token& stop) { run(stop); })) {}

MountLink::~MountLink() {
    thread_.request_stop();
    thread_.join();
}

void MountLink::run(const std::stop_token& stop) {
    std::string last;
    while (!stop.stop_requested()) {
        const Status ended = serve(stop);
        if (!ended && ended.error().message != last && !stop.stop_requested()) {
            last = ended.error().message;
            log::warning(
                "no connection to the node program; files that are mounted stay usable",
                {{"socket", socket_path_}, {"error", last}});
        }
        for (int at = 0; at < kPausePolls && !stop.stop_requested(); ++at) {
            std::this_thread::sleep_for(kPollPause);  // short, so that a stop ends the pause
        }
    }
}

Status MountLink::connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path_.size() >= sizeof address.sun_path) {
        return fail(ErrorCode::kInvalidArgument, "the socket's path is too long");
    }
    socket_path_.copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd socket{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        return fail_errno("connecting to", socket_path_);
    }
    const std::scoped_lock lock{mutex_};
    socket_ = std::move(socket);
    return send_hand_over(socket_.get(), {HandOverKind::kHello, revision_}, mount_.get());
}

Status MountLink::await_message(const std::stop_token& stop) const {
    while (!stop.stop_requested()) {
        pollfd wait{socket_.get(), POLLIN, 0};
        if (::poll(&wait, 1, static_cast<int>(kPollPause.count())) > 0) {
            return {};
        }
    }
    return fail(ErrorCode::kCancelled, "stopping");
}

Status MountLink::serve(const std::stop_token& stop) {
    STOKER_TRY_VOID(connect());
    while (true) {
        STOKER_TRY_VOID(await_message(stop));
        STOKER_TRY(ReceivedHandOver received, receive_hand_over(socket_.get(), true));
        if (received.message.kind == HandOverKind::kLost) {
            return fail(
                ErrorCode::kUnavailable,
                "the mount is lost, because both ends had ended: start the pod again");
        }
        if (received.message.kind != HandOverKind::kMount || !received.descriptor.valid() ||
            mount_.valid()) {
            continue;
        }
        UniqueFd copy{::fcntl(received.descriptor.get(), F_DUPFD_CLOEXEC, 0)};
        if (!copy.valid()) {
            return fail_errno("copying", "the mount's descriptor");
        }
        {
            const std::scoped_lock lock{mutex_};
            mount_ = std::move(copy);
            revision_ = received.message.revision;
        }
        on_mount_(std::move(received.descriptor), received.message.revision);
    }
}

void MountLink::tell_revision(std::uint64_t revision) {
    const std::scoped_lock lock{mutex_};
    revision_ = revision;
    // An error is ignored: if the connection has ended, the next one's hello tells the revision.
    [[maybe_unused]] const Status sent =
        send_hand_over(socket_.get(), {HandOverKind::kShows, revision}, -1);
}

}  // namespace stoker::files
