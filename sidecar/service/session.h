#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"
#include "proto/local/protocol.h"
#include "sidecar/core/demand_book.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_set.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/peer_secret.h"
#include "sidecar/service/throttle.h"
#include "sidecar/service/unix_listener.h"

namespace stoker::sidecar {

class Session;

// Serves the sessions of one dataset. Called on the loop's thread.
class SessionHandler {
public:
    virtual ~SessionHandler() = default;

    // The session has sent its Hello; answer with a kWelcome or a kError.
    virtual void attach(Session& session) = 0;
    virtual void on_frame(Session& session, Frame frame) = 0;

    // The session ends; do not use it afterwards.
    virtual void detach(Session& session) = 0;
};

// Receives the reading events of a session's trainer, besides the session. Called on the loop's
// thread.
class ReadingListener {
public:
    virtual ~ReadingListener() = default;

    virtual void on_drawn(const Session& session, const local::Drawn& drawn) = 0;
    virtual void on_counted(const local::Counted& counted) = 0;
};

// One accepted connection: a trainer's process, or another sidecar for one of its trainers. Its id
// is never reused. Owned by its SessionServer.
class Session : private FrameSocket {
public:
    Session(
        EventLoop& loop,
        ConnectionId id,
        UniqueFd socket,
        FrameSocket::OnFrame on_frame,
        FrameSocket::OnClosed on_closed);

    [[nodiscard]] ConnectionId id() const { return id_; }

    [[nodiscard]] const local::Hello& hello() const { return hello_; }

    // The sidecar to which this trainer belongs; all connections of a guest socket have one number.
    [[nodiscard]] std::uint64_t sidecar() const { return sidecar_; }

    // The party of the session (core/eviction/party.h): fetches and plans are limited per party.
    [[nodiscard]] Party party() const { return party_; }

    // The namespace of the guest socket; empty: the dataset's own namespace.
    [[nodiscard]] const std::string& guest() const { return guest_; }

    // The stream id of the client's Hello; nullopt if it was 0.
    [[nodiscard]] std::optional<StreamId> stream() const;

    using FrameSocket::note_work;
    using FrameSocket::send;
    using FrameSocket::send_error;  // sends an error; the session continues

    // While paused, received frames wait, so that they do not overtake the work in progress.
    using FrameSocket::set_paused;

    // Answers the Hello with an error and ends the session.
    void refuse(const Error& error);

    void send_welcome(const local::Welcome& welcome) { send(welcome, hello_request_id_); }

    void send_listing(std::uint64_t objects_listed) {
        send(local::Listing{objects_listed}, hello_request_id_);
    }

    // Ends the connection as if the peer had hung up.
    void hang_up() { close_when_sent(); }

private:
    friend class SessionServer;

    ConnectionId id_;
    std::uint64_t sidecar_ = 0;
    Party party_ = kOwnParty;
    std::string guest_;
    bool is_known_ = false;  // may send a Hello
    local::Hello hello_;
    std::uint64_t hello_request_id_ = 0;
    SessionHandler* handler_ = nullptr;
    LoopTimer hello_timer_;
};

// Issues connection ids for all servers of a program.
class ConnectionIds {
public:
    ConnectionId next() { return ConnectionId{++last_}; }

private:
    std::uint64_t last_ = 0;
};

// Connections of several servers together. The last quarter is reserved for servers with fewer than
// kFew connections.
struct SharedPlaces {
    static constexpr std::size_t kFew = 16;

    std::size_t places = 0;
    std::size_t taken = 0;

    [[nodiscard]] bool has_place(std::size_t own) const {
        return taken < (own < kFew ? places : places - places / 4);
    }
};

struct SessionServerOptions {
    std::string path;
    mode_t mode = 0660;
    std::size_t sessions_max = 1024;
    std::size_t sidecar_sessions_max = 1024;  // per sidecar
    std::uint64_t sidecar = 0;                // our id; peers send theirs

    // Set: the socket is for sidecars only, which run as our own user or root and send a Peer frame
    // with this secret. Not set: it is for trainers, which may not act for others.
    std::optional<PeerSecret> secret{};

    // Set: this is the guest socket of that namespace, for its sidecars only. Access to the socket
    // is their permission, so Peer may carry any secret. `sidecar` and `party` come from the
    // socket, not from its clients.
    std::string guest{};
    Party party = kOwnParty;
    std::shared_ptr<Throttle> throttle{};    // bounds its sessions' time; nullptr: none
    std::shared_ptr<SharedPlaces> places{};  // shared with other servers; or nullptr
    std::shared_ptr<FrameSocket::SharedRoom> room = std::make_shared<FrameSocket::SharedRoom>();
    Duration hello_timeout = std::chrono::seconds{5};
};

// Accepts sessions on one socket, performs the handshake and passes each session to the handler
// that `route` finds for its Hello; if `route` fails, the session is refused with that error. Use
// it on the loop's thread. Handlers must outlive this object.
class SessionServer {
public:
    using Route = std::function<Result<SessionHandler*>(const local::Hello& hello)>;

    static Result<std::unique_ptr<SessionServer>> listen(
        EventLoop& loop, ConnectionIds& ids, SessionServerOptions options, Route route);

    SessionServer(const SessionServer&) = delete;
    SessionServer& operator=(const SessionServer&) = delete;
    ~SessionServer();

    [[nodiscard]] std::size_t session_count() const { return sessions_.size(); }

    // Whether another sidecar is connected.
    [[nodiscard]] bool has_other_sidecars() const;

private:
    SessionServer(EventLoop& loop, ConnectionIds& ids, SessionServerOptions options, Route route);

    void accept(UniqueFd socket, const ProcessCredentials& peer);
    void on_frame(Session& session, Frame frame);
    void greet(Session& session, Frame frame);
    void meet(Session& session, const local::Message& message);
    void take_turns();
    void count_sessions();

    [[nodiscard]] bool is_for_sidecars() const {
        return options_.secret.has_value() || !options_.guest.empty();
    }

    [[nodiscard]] Status check_hello(const Session& session) const;
    void end(Session& session, const std::string& reason);

    EventLoop& loop_;
    ConnectionIds& ids_;
    SessionServerOptions options_;
    Route route_;
    std::unique_ptr<UnixListener> listener_;
    std::map<ConnectionId, std::unique_ptr<Session>> sessions_;
    std::size_t counted_ = 0;  // sessions counted in options_.places
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
