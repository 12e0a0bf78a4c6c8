#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "common/base/error.h"
#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"
#include "proto/local/protocol.h"
#include "sidecar/service/throttle.h"

namespace stoker::sidecar {

// One whole frame and its descriptor.
struct Frame {
    std::uint64_t request_id = 0;
    local::Message message;
    UniqueFd fd{};
};

// A connected unix stream socket that exchanges frames of the local protocol without blocking. It
// holds a bounded amount for a peer: one frame of the allowed length, a few descriptors, and a
// backlog of unread answers. A violation closes the connection with a reason; a payload that does
// not decode is first answered with its error. Use it on the loop's thread.
//
// Callbacks may send, pause and close; they must not destroy the socket (post that).
class FrameSocket {
public:
    // Limits of one socket; stricter than the protocol, for servers with a thousand sockets.
    struct Limits {
        std::uint32_t payload_bytes_max = 1U << 20U;
        std::size_t backlog_bytes_max = std::size_t{32} << 20U;
    };

    // Bytes that the sockets of one server hold together: incomplete frames and unread answers.
    // When this room, or the enclosing `whole`, is full, a socket that grows and holds more than
    // `little` bytes is closed.
    struct SharedRoom {
        std::size_t bytes_max = std::size_t{256} << 20U;
        std::size_t little = std::size_t{64} << 10U;  // bytes that each socket may always hold
        std::shared_ptr<SharedRoom> whole{};          // enclosing room, or nullptr
        std::size_t bytes = 0;
    };

    using OnFrame = std::function<void(Frame)>;

    // Called once at any end except close(). "": the peer hung up between two frames.
    using OnClosed = std::function<void(const std::string& reason)>;

    FrameSocket(EventLoop& loop, UniqueFd socket, OnFrame on_frame, OnClosed on_closed);
    FrameSocket(const FrameSocket&) = delete;
    FrameSocket& operator=(const FrameSocket&) = delete;
    ~FrameSocket();

    void set_limits(Limits limits) { limits_ = limits; }

    void share(std::shared_ptr<SharedRoom> room) { room_ = std::move(room); }

    // Charges our reading to the throttle; nothing is read while its time is used up.
    void limit_by(std::shared_ptr<Throttle> throttle) { throttle_ = std::move(throttle); }

    // Charges the work of another thread for this connection to the throttle.
    void note_work(Duration time);

    // Bytes queued for the peer.
    [[nodiscard]] std::size_t backlog_bytes() const { return backlog_bytes_; }

    // Called when the backlog falls to kBacklogLow after it was higher.
    static constexpr std::size_t kBacklogLow = std::size_t{256} << 10U;

    void on_drained(std::function<void()> callback) { on_drained_ = std::move(callback); }

    // Queues a frame with `fd`. Nothing is sent after close().
    void send(const local::Message& message, std::uint64_t request_id, UniqueFd fd = {});
    void send_error(const Error& error, std::uint64_t request_id);

    // While paused, nothing is read: frames wait in the kernel's buffer.
    void set_paused(bool paused);

    // Sends what is queued, reads nothing more, then closes. on_closed is still called.
    void close_when_sent();

    // Closes at once, without on_closed.
    void close();

    [[nodiscard]] bool is_open() const { return socket_.valid(); }

    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    struct Outgoing {
        std::vector<std::byte> bytes;
        UniqueFd fd;
        std::size_t sent = 0;
    };

    void on_io(IoReady ready);
    void read_some();
    bool receive();
    void give_back_buffer();
    bool take_descriptors(msghdr& message);
    void hand_out_frames();
    std::size_t take_frame(std::span<const std::byte> bytes);
    UniqueFd take_descriptor(local::FrameType type);
    void flush();
    bool send_one(Outgoing& frame);
    void update_interest();
    [[nodiscard]] bool may_read();
    void wait_for_throttle();
    void go_on();
    void fail(const std::string& reason);
    void fail_later(const std::string& reason);
    bool has_room();

    EventLoop& loop_;
    UniqueFd socket_;
    OnFrame on_frame_;
    OnClosed on_closed_;
    Limits limits_;
    std::vector<std::byte> incoming_;
    std::size_t incoming_used_ = 0;  // bytes of incoming_ that hold data
    std::deque<UniqueFd> descriptors_;
    std::deque<Outgoing> outgoing_;
    std::size_t backlog_bytes_ = 0;
    bool was_high_ = false;  // the backlog exceeded kBacklogLow since on_drained_ was last called
    std::function<void()> on_drained_;
    std::shared_ptr<SharedRoom> room_;
    std::size_t held_bytes_ = 0;  // counted in room_
    std::shared_ptr<Throttle> throttle_;
    bool waiting_ = false;  // waits until the throttle has time again
    bool paused_ = false;
    bool closing_ = false;
    bool handing_out_ = false;
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
