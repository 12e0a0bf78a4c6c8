#include "sidecar/peers/channel_queues.h"

#include <iterator>
#include <utility>

namespace stoker::sidecar {

namespace {

// Memory that a queued frame costs besides its bytes, so that many empty frames count, too.
constexpr std::size_t kFrameCost = 256;

// Number of sent payloads that may wait for their release while more frames are being sent: waking
// the sidecar's loop costs more than their memory.
constexpr std::size_t kHoldersMax = 16;

std::size_t cost_of(const ChannelEvent& event) {
    const auto* frame = std::get_if<PeerFrame>(&event);
    return frame == nullptr ? 0 : wire_bytes(*frame) + kFrameCost;
}

}  // namespace

bool ChannelQueues::send(PeerFrame frame) {
    const std::lock_guard lock{mutex_};
    if (is_closed_) {
        return false;
    }
    unsent_ += wire_bytes(frame);
    was_high_ = was_high_ || unsent_ > PeerChannel::kUnsentLow;
    frames_.push_back(std::move(frame));
    return !std::exchange(network_is_woken_, true);
}

std::size_t ChannelQueues::unsent_bytes() const {
    const std::lock_guard lock{mutex_};
    return unsent_;
}

ChannelQueues::Taken ChannelQueues::take_event() {
    const std::lock_guard lock{mutex_};
    Taken taken;
    taken.spent = std::exchange(spent_, {});
    if (events_.empty()) {
        sidecar_is_woken_ = false;
        return taken;
    }
    taken.event = std::move(events_.front());
    events_.pop_front();
    waiting_ -= cost_of(*taken.event);
    if (is_stopped_ && waiting_ <= waiting_max_ / 2) {
        is_stopped_ = false;
        taken.resume = true;
    }
    return taken;
}

// Releases frames after the lock, because the destructor of a payload's holder may run any code.
void ChannelQueues::close() {
    std::deque<PeerFrame> frames;
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
    frames.swap(frames_);
}

void ChannelQueues::take_frames(FrameWriter& writer) {
    std::deque<PeerFrame> frames;
    {
        const std::lock_guard lock{mutex_};
        frames.swap(frames_);
        network_is_woken_ = false;
    }
    for (PeerFrame& frame : frames) {
        writer.push(std::move(frame));
    }
}

bool ChannelQueues::note_written(std::size_t bytes, PayloadHolders spent) {
    const std::lock_guard lock{mutex_};
    unsent_ -= bytes;
    spent_.insert(
        spent_.end(), std::make_move_iterator(spent.begin()), std::make_move_iterator(spent.end()));
    if (was_high_ && unsent_ <= PeerChannel::kUnsentLow) {
        was_high_ = false;
        push_event(ChannelDrained{});
    }
    const bool is_due = is_closed_ || unsent_ == 0 || spent_.size() >= kHoldersMax;
    return ((is_due && !spent_.empty()) || !events_.empty()) && wake_sidecar();
}

bool ChannelQueues::deliver(ChannelEvent event) {
    const std::lock_guard lock{mutex_};
    push_event(std::move(event));
    return wake_sidecar();
}

void ChannelQueues::push_event(ChannelEvent event) {
    waiting_ += cost_of(event);
    events_.push_back(std::move(event));
}

bool ChannelQueues::wake_sidecar() {
    return !std::exchange(sidecar_is_woken_, true);
}

bool ChannelQueues::must_stop_reading() {
    const std::lock_guard lock{mutex_};
    is_stopped_ = is_stopped_ || waiting_ >= waiting_max_;
    return is_stopped_;
}

}  // namespace stoker::sidecar
