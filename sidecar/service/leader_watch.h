#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/runtime/event_loop.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/peer_secret.h"

namespace stoker::sidecar {

// Monitors the leader of a node directory for a follower: its own connection to leader.sock, with a
// ping every half second. A leader that waits for a slow origin or disk still answers pings; one
// whose loop does not run for two seconds (stopped, hung, out of CPU) does not, and counts as gone
// until it answers again. Use it on the loop's thread.
class LeaderWatch {
public:
    enum class State : std::uint8_t {
        kNobody,     // no process accepts connections
        kAnswering,  // the last ping was answered, or the next answer is not due yet
        kSilent,     // accepts connections but does not answer
    };

    using Connect = std::function<Result<LeaderConnection>()>;

    // `on_change`: called when the state changes. Idle before start().
    LeaderWatch(EventLoop& loop, Connect connect_to_leader, std::function<void()> on_change);
    LeaderWatch(const LeaderWatch&) = delete;
    LeaderWatch& operator=(const LeaderWatch&) = delete;

    // Checks at once, then every half second. A second call only checks.
    void start();
    void stop();

    [[nodiscard]] State state() const { return state_; }

    // Time without any answer; zero while the leader answers or the watch is stopped.
    [[nodiscard]] Duration unanswered() const;

private:
    void look();
    void connect();
    void ask(TimePoint now);
    void on_frame(const Frame& frame);
    void set_state(State state);

    EventLoop& loop_;
    Connect connect_to_leader_;
    std::function<void()> on_change_;
    State state_ = State::kNobody;
    std::unique_ptr<FrameSocket> socket_;
    std::optional<TimePoint> asked_at_;         // time of the unanswered ping
    std::optional<TimePoint> unanswered_from_;  // unset while a leader answers, and when stopped
    TimePoint looked_at_{};
    LoopTimer timer_;
};

}  // namespace stoker::sidecar
