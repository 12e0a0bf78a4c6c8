#pragma once

#include <cstddef>
#include <memory>

#include "common/runtime/event_loop.h"
#include "sidecar/peers/channel_queues.h"
#include "sidecar/peers/network_thread.h"
#include "sidecar/peers/peer_network.h"

// A channel as the sidecar's loop sees it.
namespace stoker::sidecar {

// State that a channel and its connection share. All but `queues` and `to_sidecar` belongs to the
// sidecar's loop.
struct ChannelState {
    ChannelState(
        std::weak_ptr<NetworkThread> network,
        ConnectionId connection,
        const NetworkLimits& network_limits,
        LoopTasks::Poster poster)
        : thread(std::move(network)),
          id(connection),
          limits(network_limits),
          to_sidecar(std::move(poster)),
          queues(network_limits.waiting_max) {}

    const std::weak_ptr<NetworkThread> thread;  // expired: the network has ended
    const ConnectionId id;
    const NetworkLimits limits;
    const LoopTasks::Poster to_sidecar;
    ChannelQueues queues;
    bool is_accepted = false;      // set by accept; until then events wait
    PeerEvents* events = nullptr;  // nullptr: before accept, after on_end(), and after destruction
    bool is_destroyed = false;     // the channel was destroyed
};

// Returns the connection's view of `state`.
ConnectionEnds ends_of(const std::shared_ptr<ChannelState>& state);

// Makes the channel of an incoming connection, and lets it read.
void accept_channel(const std::shared_ptr<ChannelState>& state, const PeerNetwork::Accept& accept);

class TlsChannel final : public PeerChannel {
public:
    explicit TlsChannel(std::shared_ptr<ChannelState> state)
        : state_(std::move(state)) {}

    TlsChannel(const TlsChannel&) = delete;
    TlsChannel& operator=(const TlsChannel&) = delete;
    ~TlsChannel() override;

    void send(PeerFrame frame) override;

    [[nodiscard]] std::size_t unsent_bytes() const override {
        return state_->queues.unsent_bytes();
    }

private:
    const std::shared_ptr<ChannelState> state_;
};

}  // namespace stoker::sidecar
