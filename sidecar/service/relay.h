#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/domain/ids.h"
#include "common/runtime/loop_tasks.h"
#include "sidecar/service/fetch_patience.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/replay_log.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

// Carries one session of a follower to the leader and back, over a connection of its own. After the
// leader's death it is connected again, to whoever leads then, and says again what the log holds;
// the client notices nothing but a pause. A leader that is behind makes the client wait. Belongs to
// the loop's thread.
class Relay {
public:
    // Called from callbacks of our socket, as `listener` is: do not destroy the relay in them.
    struct Callbacks {
        std::function<void()> lost;     // the leader's end is gone
        std::function<void()> waiting;  // for admit(), of waits_for()

        // Can the client read nothing by itself? Then its fetches are asked again while the leader
        // sends them to the origin, and a leader that cannot serve yet is waited for.
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

    // Says hello there. Not from callbacks of our socket.
    void connect(LeaderConnection connection);

    [[nodiscard]] bool is_connected() const { return upstream_ != nullptr && upstream_->is_open(); }

    // Nobody leads, or nobody answers: a client that was welcomed is told to read at the origin
    // itself until connect(); others, and those that read under a contract, lose the session. Not
    // from callbacks of our socket.
    void stand_in(const Error& why);

    // From the client. Waits in the log while there is no leader.
    void on_request(Frame frame);

    [[nodiscard]] Session& session() { return session_; }

    // The revision that a leader serves and that the client may not be told of yet.
    [[nodiscard]] std::optional<domain::RevisionId> waits_for() const;

    // The client may use it.
    void admit();

    // The revision that the client reads, or waits for; nullopt: no leader has told it yet.
    [[nodiscard]] std::optional<domain::RevisionId> revision() const {
        return revision_ ? std::optional{domain::RevisionId{*revision_}} : waits_for();
    }

    // The client has hung up: its session is not used any more. `on_parted` is called once, when
    // the leader has counted what the client had said to be read, or is gone.
    void part(std::function<void()> on_parted);

    // Has a leader ever answered? Then its revision is in use.
    [[nodiscard]] bool is_welcomed() const { return revision_.has_value(); }

    // Samples of that revision; 0: not welcomed yet.
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
    std::optional<local::Welcome> held_;  // until admit()
    std::deque<Frame> replay_;            // what a new leader was not told yet
    bool ready_ = false;                  // welcomed on the present connection
    bool stands_in_ = false;
    bool sending_on_ = false;
    bool counts_ = false;              // the leader there answers kConsumed
    bool ahead_ = false;               // it takes plans with the beginning of the next epoch
    std::uint64_t uncounted_ = 0;      // such answers that are owed
    std::function<void()> on_parted_;  // set: the client has hung up
    FetchPatience patience_;           // where the client must wait
    LoopTimer ask_timer_;
    ReplayLog log_;
};

}  // namespace stoker::sidecar
