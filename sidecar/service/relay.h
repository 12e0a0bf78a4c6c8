#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/domain/ids.h"
#include "common/runtime/event_loop.h"
#include "sidecar/service/fetch_patience.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/replay_log.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

// Carries one session of a follower to the leader and back over its own connection. After the
// leader's death it reconnects to the next leader and replays its log; the client only sees a
// pause. A slow leader makes the client wait. Use it on the loop's thread.
class Relay {
public:
    // Called from callbacks of our socket, like `listener`: do not destroy the relay in them.
    struct Callbacks {
        std::function<void()> lost;     // the leader has hung up
        std::function<void()> waiting;  // for admit() of the revision that waits_for() returns

        // Whether the client cannot read the origin itself. If so, the relay retries a fetch of
        // which the leader has no sample ready, and waits for a leader that cannot serve yet.
        std::function<bool()> must_wait;
    };

    Relay(
        EventLoop& loop,
        Session& session,
        std::string client_directory,
        ReadingListener& listener,
        Callbacks callbacks);
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    // Connects and sends the Hello. Do not call it from callbacks of our socket.
    void connect(LeaderConnection connection);

    [[nodiscard]] bool is_connected() const { return upstream_ != nullptr && upstream_->is_open(); }

    // Call while there is no leader, or none that answers: a welcomed client is told to read the
    // origin until connect(); a client that is not welcomed, or reads under a contract, loses its
    // session. Do not call it from callbacks of our socket.
    void stand_in(const Error& why);

    // Handles a client's frame; logs it while there is no leader.
    void on_request(Frame frame);

    [[nodiscard]] Session& session() { return session_; }

    // The leader's revision, if the client may not be told of it yet.
    [[nodiscard]] std::optional<domain::RevisionId> waits_for() const;

    // Permits the client to use the revision that waits_for() returned.
    void admit();

    // The revision that the client reads or waits for; nullopt: no leader has sent it yet.
    [[nodiscard]] std::optional<domain::RevisionId> revision() const {
        return revision_ ? std::optional{domain::RevisionId{*revision_}} : waits_for();
    }

    // Call it when the client has hung up; the session is not used afterwards. Calls `on_parted`
    // once, when the leader has counted the client's reported reads or is gone.
    void part(std::function<void()> on_parted);

    // Whether a leader has ever answered, so that its revision is in use.
    [[nodiscard]] bool is_welcomed() const { return revision_.has_value(); }

    // Number of samples of revision(); 0: not welcomed yet.
    [[nodiscard]] std::uint64_t sample_count() const { return log_.sample_count(); }

private:
    void on_answer(const Frame& frame);
    void on_error(const local::ErrorReply& error);
    void ask_later(const Frame& frame, local::Fetched refused);
    void ask_again_at_due();
    void ask_again();
    void on_counted(const Frame& frame);
    void end_parting();
    void answer_alone(Frame frame);
    void on_welcome(const local::Message& message);
    void say_again();
    void send_on();
    void forget_leader();
    [[nodiscard]] bool refuse_request(const Frame& frame);

    EventLoop& loop_;
    Session& session_;
    std::string client_directory_;
    ReadingListener& listener_;
    Callbacks callbacks_;
    std::unique_ptr<FrameSocket> upstream_;
    std::optional<std::uint64_t> revision_;
    std::optional<local::Welcome> held_;  // kept until admit()
    std::deque<Frame> replay_;            // frames that a new leader has yet to be sent
    bool ready_ = false;                  // welcomed on the current connection
    bool stands_in_ = false;
    bool sending_on_ = false;
    bool counts_ = false;              // the leader answers kConsumed
    bool ahead_ = false;               // the leader accepts plans beyond the epoch
    bool others_ = false;              // the leader accepts losses with p_others
    std::uint64_t uncounted_ = 0;      // answers to kConsumed still to come
    std::function<void()> on_parted_;  // set: the client has hung up
    FetchPatience patience_;           // for clients that must wait
    LoopTimer ask_timer_;
    ReplayLog log_;
};

}  // namespace stoker::sidecar
