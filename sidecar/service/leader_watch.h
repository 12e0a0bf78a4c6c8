#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/runtime/loop_tasks.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/peer_secret.h"

namespace stoker::sidecar {

// Whether the leader of a node directory is there, seen from a follower: a connection of its own to
// leader.sock, and a ping on it every half second. A leader that waits for a slow origin or disk
// answers pings, so it is busy; one whose loop does not turn for two seconds (stopped, hung, out of
// CPU) does not, and counts as gone until it answers again. Belongs to the loop's thread.
class LeaderWatch {
public:
    enum class State : std::uint8_t {
        kNobody,     // nobody accepts connections
        kAnswering,  // the last ping was answered, or the next answer is not due yet
        kSilent,     // accepts connections and answers nothing
    };

    using Connect = std::function<Result<LeaderConnection>()>;

    // `on_change`: the state is another one than before. Not running before start().
    LeaderWatch(EventLoop& loop, Connect connect_to_leader, std::function<void()> on_change);
    LeaderWatch(const LeaderWatch&) = delete;
    LeaderWatch& operator=(const LeaderWatch&) = delete;

    // Looks at once, and then every half second. A second call only looks.
    void start();
    void stop();

    [[nodiscard]] State state() const { return state_; }

    // How long nobody has answered; zero while somebody does, or while the watch does not run.
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
    std::optional<TimePoint> asked_at_;         // of the ping without an answer
    std::optional<TimePoint> unanswered_from_;  // unset while somebody answers, and when stopped
    TimePoint looked_at_{};
    LoopTimer timer_;
};

}  // namespace stoker::sidecar
