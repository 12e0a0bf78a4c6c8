#include "sidecar/service/leader_watch.h"

#include <string>
#include <utility>
#include <variant>

namespace stoker::sidecar {

namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds{500};
constexpr Duration kSilentAfter = std::chrono::seconds{2};
constexpr std::uint64_t kPingRequestId = 1;

}  // namespace

LeaderWatch::LeaderWatch(
    EventLoop& loop, Connect connect_to_leader, std::function<void()> on_change)
    : loop_(loop),
      connect_to_leader_(std::move(connect_to_leader)),
      on_change_(std::move(on_change)),
      timer_(loop) {}

void LeaderWatch::start() {
    if (!unanswered_from_ && state_ != State::kAnswering) {
        unanswered_from_ = looked_at_ = loop_.now();
    }
    look();
}

void LeaderWatch::stop() {
    timer_.cancel();
    socket_.reset();
    asked_at_.reset();
    unanswered_from_.reset();
    state_ = State::kNobody;
}

Duration LeaderWatch::unanswered() const {
    return unanswered_from_ ? loop_.now() - *unanswered_from_ : Duration{};
}

void LeaderWatch::look() {
    const TimePoint now = loop_.now();
    const Duration since_last = now - std::exchange(looked_at_, now);
    timer_.run_at(now + kLookInterval, [this] { look(); });
    if (socket_ == nullptr || !socket_->is_open()) {
        connect();
    } else if (!asked_at_) {
        ask(now);
    } else if (since_last > kSilentAfter / 2) {
        asked_at_ = now;  // our own process was stopped: the answer may be waiting
    } else if (now - *asked_at_ > kSilentAfter) {
        set_state(State::kSilent);
    }
}

void LeaderWatch::connect() {
    asked_at_.reset();
    auto connection = connect_to_leader_();
    if (!connection) {
        set_state(State::kNobody);
        return;
    }
    socket_ = std::make_unique<FrameSocket>(
        loop_,
        std::move(connection->socket),
        [this](const Frame& frame) { on_frame(frame); },
        [this](const std::string&) {
            asked_at_.reset();
            set_state(State::kNobody);
        });
    socket_->send(connection->peer, 0);
    ask(loop_.now());
}

void LeaderWatch::ask(TimePoint now) {
    asked_at_ = now;
    socket_->send(local::Ping{}, kPingRequestId);
}

void LeaderWatch::on_frame(const Frame& frame) {
    if (std::holds_alternative<local::Pong>(frame.message)) {
        asked_at_.reset();
        set_state(State::kAnswering);
    }
}

void LeaderWatch::set_state(State state) {
    if (state == State::kAnswering) {
        unanswered_from_.reset();
    } else if (!unanswered_from_) {
        unanswered_from_ = loop_.now();
    }
    if (std::exchange(state_, state) != state) {
        on_change_();
    }
}

}  // namespace stoker::sidecar
