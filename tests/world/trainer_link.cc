#include "tests/world/trainer_link.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sidecar/service/unix_listener.h"

namespace stoker::world {

namespace {

// The same limit as in link.py.
constexpr Duration kSilenceMax = std::chrono::seconds{30};
constexpr Duration kFirstDelay = std::chrono::milliseconds{50};
constexpr Duration kDelayMax = std::chrono::seconds{3};

}  // namespace

TrainerLink::TrainerLink(
    Schedule& schedule,
    EventLoop& loop,
    std::string socket_path,
    local::Hello hello,
    Callbacks callbacks)
    : schedule_(schedule),
      loop_(loop),
      socket_path_(std::move(socket_path)),
      hello_(std::move(hello)),
      callbacks_(std::move(callbacks)),
      delay_(kFirstDelay),
      timeout_(loop),
      tasks_(loop) {}

bool TrainerLink::is_attached() {
    if (state_ == State::kAway && loop_.now() >= not_before_) {
        connect();
    }
    return state_ == State::kAttached;
}

void TrainerLink::connect() {
    connected_at_ = loop_.now();
    auto connected = sidecar::connect_unix(socket_path_);
    if (!connected) {
        lose("nobody listens");
        return;
    }
    socket_ = std::make_shared<sidecar::FrameSocket>(
        loop_,
        *std::move(connected),
        [this](sidecar::Frame frame) { on_frame(std::move(frame)); },
        [this](const std::string& why) { lose(why.empty() ? "the sidecar hung up" : why); });
    socket_->set_limits({.payload_bytes_max = local::kFramePayloadBytesMax});
    state_ = State::kPending;
    socket_->send(hello_, ++last_request_);
    timeout_.run_in(kSilenceMax, [this] { lose("no answer to the hello"); });
}

void TrainerLink::ask(const local::Message& message, Duration timeout, Then then, UniqueFd fd) {
    if (state_ != State::kAttached) {
        tasks_.post([then = std::move(then)] { then(std::nullopt); });
        return;
    }
    asked_ = ++last_request_;
    then_ = std::move(then);
    asked_at_ = loop_.now();
    timeout_.run_in(timeout, [this] { lose("no answer in time"); });
    socket_->send(message, asked_, std::move(fd));
}

bool TrainerLink::tell(const local::Message& message) {
    if (state_ == State::kAttached) {
        socket_->send(message, 0);
    }
    return state_ == State::kAttached;
}

void TrainerLink::on_frame(sidecar::Frame frame) {
    if (state_ == State::kPending) {
        timeout_.run_in(kSilenceMax, [this] { lose("no news of the listing"); });
        if (const auto* error = std::get_if<local::ErrorReply>(&frame.message)) {
            lose("refused: " + error->message);
        } else if (const auto* welcome = std::get_if<local::Welcome>(&frame.message)) {
            timeout_.cancel();
            state_ = State::kAttached;
            delay_ = kFirstDelay;
            ++attached_count_;
            if (!callbacks_.welcome(*welcome)) {
                lose("another revision");
            }
        }
        return;
    }
    if (then_ && frame.request_id == asked_) {
        timeout_.cancel();
        std::exchange(then_, nullptr)(std::move(frame.message));
    }
}

void TrainerLink::lose(const std::string& why) {
    timeout_.cancel();
    if (socket_ != nullptr) {
        socket_->close();
        // Deferred, because the socket may run our callback.
        tasks_.post([gone = std::exchange(socket_, nullptr)] {});
    }
    const bool had_session = std::exchange(state_, State::kAway) == State::kAttached;
    not_before_ = loop_.now() + schedule_.draw(delay_ / 2, delay_);
    delay_ = std::min(delay_ * 2, kDelayMax);
    callbacks_.lost(why, had_session);
    if (then_) {
        tasks_.post([then = std::exchange(then_, nullptr)] { then(std::nullopt); });
    }
}

}  // namespace stoker::world
