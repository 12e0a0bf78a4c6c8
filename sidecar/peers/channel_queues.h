#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <variant>

#include "sidecar/peers/frame_writer.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::sidecar {

// Events of a channel, which its PeerEvents receives in order.
struct ChannelDrained {};

using ChannelEvent = std::variant<PeerIdentity, PeerFrame, ChannelDrained, Error>;

// The two queues of one channel: frames from the sidecar's loop to the network's thread, events
// back. Payloads of sent frames are released on the sidecar's loop. Thread-safe. Functions return
// true if the other thread must be woken; it is then woken once, until it has emptied its queue.
class ChannelQueues {
public:
    // `waiting_max`: bytes of received frames that may wait for the sidecar's loop; above it, the
    // network's thread stops reading from the peer.
    explicit ChannelQueues(std::size_t waiting_max)
        : waiting_max_(waiting_max) {}

    // Queues a frame. Called on the sidecar's loop.
    [[nodiscard]] bool send(PeerFrame frame);
    [[nodiscard]] std::size_t unsent_bytes() const;

    struct Taken {
        std::optional<ChannelEvent> event{};  // nullopt: none waits; deliver() wakes again
        bool resume = false;                  // reading was stopped and may go on
        PayloadHolders spent{};               // of frames that are sent: for release on this thread
    };

    [[nodiscard]] Taken take_event();

    // Drops all queued frames, and all frames sent later.
    void close();

    // Moves queued frames to the writer. Called on the network's thread.
    void take_frames(FrameWriter& writer);
    [[nodiscard]] bool note_written(std::size_t bytes, PayloadHolders spent);
    [[nodiscard]] bool deliver(ChannelEvent event);

    // Whether too many bytes wait. take_event() tells when reading may resume.
    [[nodiscard]] bool must_stop_reading();

private:
    void push_event(ChannelEvent event);
    [[nodiscard]] bool wake_sidecar();

    const std::size_t waiting_max_;
    mutable std::mutex mutex_;  // guards all members below
    std::deque<PeerFrame> frames_{};
    bool is_closed_ = false;
    bool network_is_woken_ = false;
    std::size_t unsent_ = 0;
    bool was_high_ = false;
    std::deque<ChannelEvent> events_{};
    PayloadHolders spent_{};
    bool sidecar_is_woken_ = false;
    std::size_t waiting_ = 0;
    bool is_stopped_ = false;
};

}  // namespace stoker::sidecar
