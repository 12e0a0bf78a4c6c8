#include "sidecar/peers/tls_channel.h"

#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr int kEventsPerTurn = 64;  // so that one busy peer does not starve the sidecar's loop

// Passes one event to its receiver. Afterwards the channel may be destroyed.
struct HandOver {
    PeerEvents& events;

    void operator()(const PeerIdentity& peer) const { events.on_open(peer); }

    void operator()(PeerFrame& frame) const { events.on_frame(std::move(frame)); }

    void operator()(const ChannelDrained& /*drained*/) const { events.on_drained(); }

    void operator()(const Error& error) const { events.on_end(error); }
};

void deliver_events(const std::shared_ptr<ChannelState>& state);

void deliver_later(const std::shared_ptr<ChannelState>& state) {
    state->to_sidecar([state] { deliver_events(state); });
}

// Delivers waiting events. After the channel's end, only releases payloads.
void deliver_events(const std::shared_ptr<ChannelState>& state) {
    if (!state->is_accepted) {
        return;
    }
    for (int i = 0; i < kEventsPerTurn; ++i) {
        auto taken = state->queues.take_event();
        if (!taken.event) {
            return;
        }
        PeerEvents* events = state->events;
        if (std::holds_alternative<Error>(*taken.event)) {
            state->events = nullptr;
        }
        if (events != nullptr) {
            std::visit(HandOver{*events}, *taken.event);
        }
        const auto thread = state->thread.lock();
        if (taken.resume && thread != nullptr) {
            thread->read_on(state->id);
        }
    }
    deliver_later(state);
}

}  // namespace

ConnectionEnds ends_of(const std::shared_ptr<ChannelState>& state) {
    return {
        std::shared_ptr<ChannelQueues>{state, &state->queues}, [state] { deliver_later(state); }};
}

void accept_channel(const std::shared_ptr<ChannelState>& state, const PeerNetwork::Accept& accept) {
    PeerEvents& events = accept(std::make_unique<TlsChannel>(state));
    state->is_accepted = true;
    state->events = state->is_destroyed ? nullptr : &events;
    if (const auto thread = state->thread.lock(); thread != nullptr) {
        thread->read_on(state->id);
    }
    deliver_events(state);
}

TlsChannel::~TlsChannel() {
    state_->events = nullptr;
    state_->is_destroyed = true;
    state_->queues.close();
    if (const auto thread = state_->thread.lock(); thread != nullptr) {
        thread->close(state_->id);
    }
}

void TlsChannel::send(PeerFrame frame) {
    STOKER_CHECK(
        !frame.head.empty() && frame.head.size() <= PeerFrame::kHeadMax &&
            frame.payload.bytes.size() <= state_->limits.payload_max,
        "a frame to a peer must have a head and be within the length limits");
    const auto thread = state_->thread.lock();
    if (thread != nullptr && state_->queues.send(std::move(frame))) {
        thread->flush(state_->id);
    }
}

}  // namespace stoker::sidecar
