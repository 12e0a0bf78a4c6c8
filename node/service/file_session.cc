#include "node/service/file_session.h"

#include <iterator>
#include <system_error>
#include <utility>

#include "common/log/log.h"
#include "common/runtime/named_thread.h"

namespace stoker::node {

namespace {

using files::HandOverKind;

constexpr std::size_t kConnectionsMax = 4;

}  // namespace

Result<std::shared_ptr<FileSession>> FileSession::start(UniqueFd listener, Options options) {
    const std::shared_ptr<FileSession> session{
        new FileSession{std::move(listener), std::move(options)}};
    try {
        start_thread("file-session", [session](const std::stop_token&) {
            session->run();
        }).detach();
    } catch (const std::system_error& error) {
        return fail(ErrorCode::kResourceExhausted, error.what());
    }
    return session;
}

FileSession::FileSession(UniqueFd listener, Options options)
    : options_(std::move(options)),
      loop_(clock_),
      abandoned_(loop_),
      is_mounted_(options_.is_mounted),
      accepts_(std::make_unique<AcceptLoop>(
          loop_, std::move(listener), "files", [this](UniqueFd socket) {
              adopt(std::move(socket));
          })) {}

// This thread closes the sockets and the mount's descriptor, because that can block.
void FileSession::run() {
    loop_.run();
    connections_.clear();
    accepts_.reset();
    mount_.reset();
}

void FileSession::end() {
    loop_.stop();
}

void FileSession::set_mounted(std::optional<UniqueFd> descriptor) {
    if (!descriptor) {
        loop_.post([this] { is_mounted_ = true; });
        return;
    }
    ++coming_;
    loop_.post([this, shared = std::make_shared<UniqueFd>(*std::move(descriptor))] {
        --coming_;
        keep(std::move(*shared));
    });
}

void FileSession::set_unmounted() {
    loop_.post([this] {
        is_mounted_ = false;
        mount_.reset();
    });
}

void FileSession::keep(UniqueFd descriptor) {
    is_mounted_ = true;
    mount_ = std::move(descriptor);
    revision_ = 0;
    for (const UniqueFd& socket : connections_) {
        [[maybe_unused]] const Status sent =
            files::send_hand_over(socket.get(), {HandOverKind::kMount, 0}, mount_.get());
    }
}

// The oldest connection makes room: a stoker-files that was killed may still be counted.
void FileSession::adopt(UniqueFd socket) {
    abandoned_.cancel();
    while (connections_.size() >= kConnectionsMax) {
        drop(connections_.begin());
    }
    connections_.push_back(std::move(socket));
    const auto place = std::prev(connections_.end());
    loop_.watch(place->get(), [this, place](IoReady /*ready*/) { take(place); });
}

void FileSession::drop(Place place) {
    loop_.forget(place->get());
    connections_.erase(place);
    if (connections_.empty()) {
        abandoned_.run_in(options_.patience, [this] { mount_.reset(); });
    }
}

void FileSession::take(Place place) {
    auto received = files::receive_hand_over(place->get(), is_mounted_ && !mount_.valid());
    if (!received || !answer(place->get(), *received)) {
        drop(place);
    }
}

Status FileSession::answer(int socket, files::ReceivedHandOver& received) {
    if (received.message.kind == HandOverKind::kShows) {
        revision_ = received.message.revision;
        return {};
    }
    return received.message.kind == HandOverKind::kHello
               ? answer_hello(socket, received)
               : Status{fail(ErrorCode::kInvalidArgument, "unexpected message")};
}

Status FileSession::answer_hello(int socket, files::ReceivedHandOver& received) {
    if (received.message.revision != 0) {
        revision_ = received.message.revision;  // its kShows may not have come
    }
    if (mount_.valid()) {
        return files::send_hand_over(socket, {HandOverKind::kMount, revision_}, mount_.get());
    }
    if (!is_mounted_) {
        return {};  // keep() sends the descriptor
    }
    if (!received.descriptor.valid()) {
        const Status mounted = options_.remount(*this);
        return mounted ? mounted : files::send_hand_over(socket, {HandOverKind::kLost, 0}, -1);
    }
    if (!files::is_fuse_connection(received.descriptor.get())) {
        return files::send_hand_over(socket, {HandOverKind::kLost, 0}, -1);
    }
    mount_ = std::move(received.descriptor);
    return files::send_hand_over(socket, {HandOverKind::kKept, revision_}, -1);
}

}  // namespace stoker::node
