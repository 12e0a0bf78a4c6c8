#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/unique_fd.h"
#include "common/runtime/loop_tasks.h"
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

    // The session has said hello and is owed a kWelcome or a kError.
    virtual void attach(Session& session) = 0;
    virtual void on_frame(Session& session, Frame frame) = 0;

    // The session ends; it must not be used afterwards.
    virtual void detach(Session& session) = 0;
};

// Hears what a session's trainer is given to read, besides the session itself. Called on the loop's
// thread.
class ReadingListener {
public:
    virtual ~ReadingListener() = default;

    virtual void on_drawn(const Session& session, const local::Drawn& drawn) = 0;
    virtual void on_counted(const local::Counted& counted) = 0;
};

// One accepted connection: a trainer's process, or another sidecar that speaks for one. It is told
// from the others by its id, which is never used again. Owned by its SessionServer.
class Session {
public:
    Session(
        EventLoop& loop,
        ConnectionId id,
        UniqueFd socket,
        FrameSocket::OnFrame on_frame,
        FrameSocket::OnClosed on_closed);

    [[nodiscard]] ConnectionId id() const { return id_; }

    [[nodiscard]] const local::Hello& hello() const { return hello_; }

    // The sidecar whose trainer this is; of a guest's door one number for all who come there.
    [[nodiscard]] std::uint64_t sidecar() const { return sidecar_; }

    // Fetches and plans of one party count together.
    [[nodiscard]] Party party() const { return party_; }

    // The namespace whose door this came through; empty: the dataset's own.
    [[nodiscard]] const std::string& guest() const { return guest_; }

    // Work of other threads for this session: a guest's door pauses for it.
    void note_work(Duration time);

    // The stream of its hello; none for 0.
    [[nodiscard]] std::optional<StreamId> stream() const;

    void send(const local::Message& message, std::uint64_t request_id) {
        socket_.send(message, request_id);
    }

    // Answers the request with an error; the session goes on.
    void send_error(const Error& error, std::uint64_t request_id) {
        socket_.send_error(error, request_id);
    }

    // Answers the hello with an error and ends the session.
    void refuse(const Error& error);

    void send_welcome(const local::Welcome& welcome) { socket_.send(welcome, hello_request_id_); }

    void send_listing(std::uint64_t objects_listed) {
        socket_.send(local::Listing{objects_listed}, hello_request_id_);
    }

    // A paused session's frames wait: what comes later must not overtake what is being done.
    void set_paused(bool paused) { socket_.set_paused(paused); }

    // The connection ends as if the peer had hung up.
    void hang_up() { socket_.close_when_sent(); }

private:
    friend class SessionServer;

    ConnectionId id_;
    FrameSocket socket_;
    std::uint64_t sidecar_ = 0;
    Party party_ = kOwnParty;
    std::string guest_;
    std::shared_ptr<Throttle> throttle_;
    bool is_known_ = false;  // may say hello
    local::Hello hello_;
    std::uint64_t hello_request_id_ = 0;
    SessionHandler* handler_ = nullptr;
    LoopTimer hello_timer_;
};

// Gives connection ids to all servers of a program.
class ConnectionIds {
public:
    ConnectionId next() { return ConnectionId{++last_}; }

private:
    std::uint64_t last_ = 0;
};

// Connections of several servers together. The last quarter is for servers that have few.
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
    std::size_t sidecar_sessions_max = 1024;  // of one sidecar
    std::uint64_t sidecar = 0;                // ours; peers say theirs

    // For sidecars only: our own user or root, and a Peer frame with this secret comes first.
    // Without it for trainers, which may not speak for others.
    std::optional<PeerSecret> secret{};

    // The door of this namespace: for its sidecars only. They say Peer with any secret: that they
    // reach the socket is the permission. `sidecar` and `party` are the door's, whatever they say.
    std::string guest{};
    Party party = kOwnParty;
    std::shared_ptr<Throttle> throttle{};    // bounds the time that they cost; nullptr: no bound
    std::shared_ptr<SharedPlaces> places{};  // nullptr: sessions_max alone counts
    std::shared_ptr<FrameSocket::SharedRoom> room = std::make_shared<FrameSocket::SharedRoom>();
    Duration hello_timeout = std::chrono::seconds{5};
};

// Accepts sessions on one socket, speaks the handshake with them and hands them to the handler that
// `route` finds for their hello; its error refuses them. Belongs to the loop's thread. Handlers
// must outlive it.
class SessionServer {
public:
    using Route = std::function<Result<SessionHandler*>(const local::Hello& hello)>;

    static Result<std::unique_ptr<SessionServer>> listen(
        EventLoop& loop, ConnectionIds& ids, SessionServerOptions options, Route route);

    SessionServer(const SessionServer&) = delete;
    SessionServer& operator=(const SessionServer&) = delete;
    ~SessionServer();

    [[nodiscard]] std::size_t session_count() const { return sessions_.size(); }

    // Is there a connection of another sidecar?
    [[nodiscard]] bool has_other_sidecars() const;

private:
    SessionServer(EventLoop& loop, ConnectionIds& ids, SessionServerOptions options, Route route);

    void accept(UniqueFd socket, const PeerCredentials& peer);
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
    std::size_t counted_ = 0;  // sessions, in options_.places
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
