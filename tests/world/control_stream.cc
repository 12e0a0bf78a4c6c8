#include "tests/world/control_stream.h"

#include <algorithm>
#include <utility>

namespace stoker::world {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMessagesHeld =
    6;  // most messages in flight in each direction (flow control)

}  // namespace

void ControlStream::connect(std::weak_ptr<control::AttachSession> session, StreamUser& user) {
    session_ = std::move(session);
    user_ = &user;
}

void ControlStream::in(Duration delay, void (ControlStream::*step)()) {
    schedule_.run_in(delay, [weak = weak_from_this(), step] {
        if (const auto self = weak.lock()) {
            ((*self).*step)();
        }
    });
}

TimePoint ControlStream::arrival(TimePoint& last) {
    const TimePoint due =
        schedule_.now() + schedule_.draw_scale(milliseconds{1}, milliseconds{300});
    last = std::max({last, due, stalled_until_});
    return last;
}

bool ControlStream::can_send() const {
    return up_.size() + unread_.size() < kMessagesHeld;
}

void ControlStream::send(const control::v1::SidecarMessage& message) {
    send_up({message, false});
}

void ControlStream::end_sending() {
    send_up({std::nullopt, true});
    user_ = nullptr;
}

void ControlStream::garble() {
    send_up({std::nullopt, false});
}

void ControlStream::send_up(Upward it) {
    if (!is_lost_) {
        up_.push_back(std::move(it));
        in(arrival(last_up_) - schedule_.now(), &ControlStream::arrive_up);
    }
}

// A message that arrives during a stall is delivered after the stall.
void ControlStream::arrive_up() {
    if (is_lost_ || up_.empty()) {
        return;
    }
    if (schedule_.now() < stalled_until_) {
        in(stalled_until_ - schedule_.now(), &ControlStream::arrive_up);
        return;
    }
    unread_.push_back(std::move(up_.front()));
    up_.pop_front();
    deliver();
}

void ControlStream::deliver() {
    const auto session = session_.lock();
    if (!session || has_closed_ || unread_.empty()) {
        return;
    }
    if (reads_ == 0) {
        schedule_.say("the operator's session holds reports back");
        return;
    }
    --reads_;
    const Upward next = std::move(unread_.front());
    unread_.pop_front();
    if (next.is_end) {
        session->on_half_close();
    } else {
        session->on_message(next.message);
    }
}

void ControlStream::read() {
    ++reads_;
    in(Duration{}, &ControlStream::deliver);
}

void ControlStream::write(const control::v1::OperatorMessage& message) {
    if (has_closed_) {
        return;
    }
    is_writing_ = true;
    if (is_lost_) {
        in(milliseconds{1}, &ControlStream::written);  // written to a buffer that nobody reads
        return;
    }
    down_.push_back(message);
    in(arrival(last_down_) - schedule_.now(), &ControlStream::arrive_down);
    if (down_.size() < kMessagesHeld) {
        in(milliseconds{1}, &ControlStream::written);
    }
}

void ControlStream::written() {
    const auto session = session_.lock();
    if (session && is_writing_ && !has_closed_) {
        is_writing_ = false;
        session->on_written();
    }
}

void ControlStream::arrive_down() {
    if (is_lost_ || down_.empty()) {
        return;
    }
    if (schedule_.now() < stalled_until_) {
        in(stalled_until_ - schedule_.now(), &ControlStream::arrive_down);
        return;
    }
    const control::v1::OperatorMessage message = std::move(down_.front());
    down_.pop_front();
    if (user_ != nullptr) {
        user_->on_orders(message);
    }
    written();
}

void ControlStream::close(const Status& /*why*/) {
    if (!has_closed_) {
        has_closed_ = true;
        in(Duration{}, &ControlStream::end_operator);
        in(arrival(last_down_) - schedule_.now(), &ControlStream::end_sidecar);
    }
}

void ControlStream::end_operator() {
    has_closed_ = true;
    if (const auto session = std::exchange(session_, {}).lock()) {
        session->on_gone();
    }
}

void ControlStream::end_sidecar() {
    is_lost_ = true;
    down_.clear();
    if (StreamUser* user = std::exchange(user_, nullptr)) {
        user->on_stream_end();
    }
}

void ControlStream::drop_sidecar(Duration notice) {
    user_ = nullptr;
    is_lost_ = true;
    down_.clear();
    in(notice, &ControlStream::end_operator);
}

void ControlStream::drop_operator(Duration notice) {
    session_.reset();
    has_closed_ = true;
    in(notice, &ControlStream::end_sidecar);
}

void ControlStream::cut(Duration operator_notice, Duration sidecar_notice) {
    is_lost_ = true;
    up_.clear();
    down_.clear();
    in(operator_notice, &ControlStream::end_operator);
    in(sidecar_notice, &ControlStream::end_sidecar);
}

void ControlStream::stall(TimePoint until) {
    stalled_until_ = std::max(stalled_until_, until);
}

}  // namespace stoker::world
