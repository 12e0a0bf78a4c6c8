#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/runtime/event_loop.h"
#include "sidecar/service/frame_socket.h"
#include "tests/world/schedule.h"

namespace stoker::world {

// A trainer's connection to its sidecar: client/src/stoker/link.py in virtual time. Opened on
// demand, reopened after a loss with back-off; one request at a time. Use it on the loop's thread.
class TrainerLink {
public:
    using Then = std::function<void(std::optional<local::Message>)>;  // nullopt: no sidecar now

    struct Callbacks {
        // A sidecar has sent its Welcome. Returns false if the trainer cannot use it.
        std::function<bool(const local::Welcome&)> welcome;
        // The connection is lost. `had_session`: it had received a Welcome.
        std::function<void(const std::string& why, bool had_session)> lost;
    };

    TrainerLink(
        Schedule& schedule,
        EventLoop& loop,
        std::string socket_path,
        local::Hello hello,
        Callbacks callbacks);
    TrainerLink(const TrainerLink&) = delete;
    TrainerLink& operator=(const TrainerLink&) = delete;

    // Whether there is a connection with a Welcome. Otherwise connects, when the back-off allows,
    // and does not wait.
    bool is_attached();

    // Whether a sidecar has accepted the Hello and has not answered yet.
    [[nodiscard]] bool is_pending() const { return state_ == State::kPending; }

    // Counts the Welcomes.
    [[nodiscard]] std::uint64_t attached_count() const { return attached_count_; }

    // Sends a request and calls `then` with its answer. Only without a request in flight.
    void ask(const local::Message& message, Duration timeout, Then then, UniqueFd fd = {});

    // Sends a one-way frame. False: no sidecar.
    bool tell(const local::Message& message);

    // How long the trainer has waited for an answer; zero: it waits for none.
    [[nodiscard]] Duration waits_for() const {
        return then_ ? loop_.now() - asked_at_ : Duration{};
    }

    // When the trainer last sent a Hello, or tried to.
    [[nodiscard]] TimePoint connected_at() const { return connected_at_; }

    // Lets the next try begin without back-off.
    void hurry() { not_before_ = TimePoint{}; }

private:
    enum class State : std::uint8_t { kAway, kPending, kAttached };

    void connect();
    void on_frame(sidecar::Frame frame);
    void lose(const std::string& why);

    Schedule& schedule_;
    EventLoop& loop_;
    std::string socket_path_;
    local::Hello hello_;
    Callbacks callbacks_;
    State state_ = State::kAway;
    std::shared_ptr<sidecar::FrameSocket> socket_;
    Duration delay_;
    TimePoint not_before_{};
    std::uint64_t attached_count_ = 0;
    std::uint64_t last_request_ = 0;
    std::uint64_t asked_ = 0;
    Then then_;
    TimePoint asked_at_{};
    TimePoint connected_at_{};
    LoopTimer timeout_;
    LoopTasks tasks_;
};

}  // namespace stoker::world
