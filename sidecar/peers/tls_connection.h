#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"
#include "sidecar/peers/channel_queues.h"
#include "sidecar/peers/frame_reader.h"
#include "sidecar/peers/frame_writer.h"
#include "sidecar/peers/tls_context.h"

namespace stoker::sidecar {

// One TLS connection on the network's thread: sends the frames of its channel's queues and delivers
// events there. Never blocks. All calls on the thread of `loop`, which outlives it. The destructor
// sends a TLS end, if the socket takes it, and closes.
class TlsConnection {
public:
    struct Callbacks {
        std::function<void()> on_event;   // wakes the sidecar's loop: events wait in the queues
        std::function<void()> on_open{};  // the handshake is done
        std::function<void(const Error&)> on_end;  // called last; must not destroy this object
    };

    struct Settings {
        TlsEnd end = TlsEnd::kClient;
        std::size_t payload_max = 0;
        std::shared_ptr<PayloadPool> pool{};
        Duration handshake_max{};  // time from construction until on_open
    };

    // kInternal: OpenSSL failed.
    static Result<std::unique_ptr<TlsConnection>> make(
        EventLoop& loop,
        UniqueFd socket,
        const TlsContext& context,
        std::shared_ptr<ChannelQueues> queues,
        const Settings& settings,
        Callbacks callbacks);

    TlsConnection(const TlsConnection&) = delete;
    TlsConnection& operator=(const TlsConnection&) = delete;
    ~TlsConnection();

    [[nodiscard]] bool is_open() const { return phase_ == Phase::kOpen; }

    // Call when frames wait in the queues.
    void flush();

    // Allows reading frames. An accepted connection reads none before the first call; after the
    // queues were full, none are read until the next call.
    void read_on();

private:
    enum class Phase { kConnecting, kHandshake, kOpen, kEnded };

    TlsConnection(
        EventLoop& loop,
        UniqueFd socket,
        std::shared_ptr<ChannelQueues> queues,
        const Settings& settings,
        Callbacks callbacks);

    void begin(SslPtr tls, Duration handshake_max);
    void on_io(IoReady ready);
    void connected();
    void shake_hands();
    void write_some();
    void read_some();
    std::size_t receive();
    [[nodiscard]] bool may_read() const;
    void deliver(ChannelEvent event);
    template <class Operation>
    [[nodiscard]] bool proceeds(Operation operation);
    void give_back(std::size_t written, PayloadHolders spent);
    void read_more_later();
    void fail(Error error);
    void update_interest();
    void wake_sidecar();
    void turn_done();

    EventLoop& loop_;
    UniqueFd socket_;
    SocketUse use_{};
    SslPtr tls_{};
    std::shared_ptr<ChannelQueues> queues_;
    Callbacks callbacks_;
    Phase phase_;
    FrameReader reader_;
    FrameWriter writer_{};
    bool reads_;                // the sidecar takes frames
    bool wants_write_ = false;  // TLS has bytes to write and waits for the socket
    bool goes_on_ = false;      // a task that reads more is posted
    bool must_wake_ = false;    // events were queued in this turn
    LoopTasks tasks_;
    LoopTimer handshake_timer_;
};

}  // namespace stoker::sidecar
