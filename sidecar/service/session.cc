#include "sidecar/service/session.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/core.h>
#include <unistd.h>

#include "common/log/log.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kHelloBytesMax = 16U << 10U;

}  // namespace

Session::Session(
    EventLoop& loop,
    ConnectionId id,
    UniqueFd socket,
    FrameSocket::OnFrame on_frame,
    FrameSocket::OnClosed on_closed)
    : FrameSocket(loop, std::move(socket), std::move(on_frame), std::move(on_closed)),
      id_(id),
      hello_timer_(loop) {}

std::optional<StreamId> Session::stream() const {
    return hello_.stream == 0 ? std::nullopt : std::optional{StreamId{hello_.stream}};
}

void Session::refuse(const Error& error) {
    send_error(error, hello_request_id_);
    hang_up();
}

Result<std::unique_ptr<SessionServer>> SessionServer::listen(
    EventLoop& loop, ConnectionIds& ids, SessionServerOptions options, Route route) {
    auto server = std::unique_ptr<SessionServer>{
        new SessionServer(loop, ids, std::move(options), std::move(route))};
    STOKER_TRY(
        server->listener_,
        UnixListener::listen(
            loop,
            server->options_.path,
            server->options_.mode,
            [raw = server.get()](UniqueFd socket, const ProcessCredentials& peer) {
                raw->accept(std::move(socket), peer);
            }));
    return server;
}

SessionServer::SessionServer(
    EventLoop& loop, ConnectionIds& ids, SessionServerOptions options, Route route)
    : loop_(loop),
      ids_(ids),
      options_(std::move(options)),
      route_(std::move(route)),
      tasks_(loop) {}

SessionServer::~SessionServer() {
    for (const auto& [id, session] : sessions_) {
        if (session->handler_ != nullptr) {
            session->handler_->detach(*session);
        }
    }
    sessions_.clear();
    count_sessions();
}

void SessionServer::count_sessions() {
    if (options_.places != nullptr) {
        options_.places->taken += sessions_.size() - std::exchange(counted_, sessions_.size());
    }
}

void SessionServer::accept(UniqueFd socket, const ProcessCredentials& peer) {
    const ThrottledTime time{options_.throttle.get()};
    take_turns();
    const bool is_full =
        options_.places != nullptr && !options_.places->has_place(sessions_.size());
    if (sessions_.size() >= options_.sessions_max || is_full) {
        log::warning(
            "connection refused: too many connections",
            {{"socket", options_.path}, {"connections", sessions_.size()}});
        return;
    }
    if (options_.secret && peer.uid != ::geteuid() && peer.uid != 0) {
        log::warning(
            "connection refused: wrong user", {{"socket", options_.path}, {"uid", peer.uid}});
        return;
    }
    const ConnectionId id = ids_.next();
    log::debug("connected", {{"connection", id.value()}, {"pid", peer.pid}, {"uid", peer.uid}});
    auto session = std::make_unique<Session>(
        loop_,
        id,
        std::move(socket),
        [this, id](Frame frame) { on_frame(*sessions_.at(id), std::move(frame)); },
        [this, id](const std::string& reason) { end(*sessions_.at(id), reason); });
    session->set_limits({.payload_bytes_max = kHelloBytesMax});
    session->share(options_.room);
    session->limit_by(options_.throttle);
    session->sidecar_ = options_.sidecar;
    session->party_ = options_.party;
    session->guest_ = options_.guest;
    session->is_known_ = !is_for_sidecars();
    session->hello_timer_.run_in(options_.hello_timeout, [this, id] {
        sessions_.at(id)->refuse({ErrorCode::kDeadlineExceeded, "no hello arrived in time"});
    });
    sessions_.emplace(id, std::move(session));
    count_sessions();
}

// Pauses accepting while the throttle is spent: new connections also cost time.
void SessionServer::take_turns() {
    if (options_.throttle == nullptr || !options_.throttle->is_spent()) {
        return;
    }
    listener_->set_paused(true);
    options_.throttle->on_resume(tasks_.guarded([this] { listener_->set_paused(false); }));
}

void SessionServer::on_frame(Session& session, Frame frame) {
    if (session.handler_ != nullptr) {
        session.handler_->on_frame(session, std::move(frame));
    } else {
        greet(session, std::move(frame));
    }
}

void SessionServer::greet(Session& session, Frame frame) {
    session.hello_timer_.cancel();
    session.hello_request_id_ = frame.request_id;
    auto* hello = std::get_if<local::Hello>(&frame.message);
    if (hello == nullptr && is_for_sidecars()) {
        meet(session, frame.message);
        return;
    }
    if (hello == nullptr) {
        session.refuse({ErrorCode::kInvalidArgument, "the first frame must be a hello"});
        return;
    }
    session.hello_ = std::move(*hello);
    if (!session.is_known_) {
        session.refuse({ErrorCode::kForbidden, "send the sidecars' secret before the hello"});
        return;
    }
    if (const Status checked = check_hello(session); !checked) {
        session.refuse(checked.error());
        return;
    }
    const auto handler = route_(session.hello_);
    if (!handler) {
        session.refuse(handler.error());
        return;
    }
    session.set_limits({});
    session.handler_ = *handler;
    session.handler_->attach(session);
}

// Handles the frames that another sidecar sends before its Hello.
void SessionServer::meet(Session& session, const local::Message& message) {
    const auto* peer = std::get_if<local::Peer>(&message);
    if (peer != nullptr && !options_.guest.empty()) {
        session.is_known_ = true;
    } else if (peer != nullptr && options_.secret && is_equal(peer->secret, *options_.secret)) {
        session.is_known_ = true;
        session.sidecar_ = peer->sidecar;
    } else if (session.is_known_ && std::holds_alternative<local::Ping>(message)) {
        session.send(local::Pong{}, session.hello_request_id_);
    } else {
        log::warning("connection refused: wrong secret", {{"socket", options_.path}});
        session.refuse({ErrorCode::kForbidden, "not the secret of this node directory"});
    }
}

Status SessionServer::check_hello(const Session& session) const {
    const local::Hello& hello = session.hello();
    if (hello.version != local::kProtocolVersion) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "protocol version {}, this sidecar (stoker {}) speaks version {}",
                hello.version,
                STOKER_VERSION,
                local::kProtocolVersion));
    }
    if (hello.relay != is_for_sidecars()) {
        return fail(ErrorCode::kForbidden, "only sidecars speak for the clients of others");
    }
    if (!is_for_sidecars()) {
        return {};
    }
    const auto own = std::ranges::count_if(sessions_, [&session](const auto& entry) {
        return entry.second->sidecar_ == session.sidecar_;
    });
    if (static_cast<std::size_t>(own) > options_.sidecar_sessions_max) {
        return fail(ErrorCode::kResourceExhausted, "too many sessions from one sidecar");
    }
    return {};
}

bool SessionServer::has_other_sidecars() const {
    return std::ranges::any_of(sessions_, [this](const auto& entry) {
        return entry.second->is_known_ && entry.second->sidecar_ != options_.sidecar;
    });
}

void SessionServer::end(Session& session, const std::string& reason) {
    const ThrottledTime time{options_.throttle.get()};
    session.hello_timer_.cancel();
    if (!reason.empty()) {
        log::warning(
            "connection closed",
            {{"connection", session.id().value()},
             {"client", session.hello().client},
             {"reason", reason}});
    }
    if (session.handler_ != nullptr) {
        std::exchange(session.handler_, nullptr)->detach(session);
    }
    // Deferred, because the socket is still running our callback.
    tasks_.post([this, id = session.id()] {
        sessions_.erase(id);
        count_sessions();
    });
}

}  // namespace stoker::sidecar
