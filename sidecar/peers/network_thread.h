#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "common/base/guarded.h"
#include "common/base/strong.h"
#include "common/base/unique_fd.h"
#include "common/runtime/accept_loop.h"
#include "common/runtime/event_loop.h"
#include "sidecar/peers/channel_queues.h"
#include "sidecar/peers/tls_connection.h"
#include "sidecar/peers/tls_context.h"

namespace stoker::sidecar {

using ConnectionId = Strong<std::uint64_t, struct ConnectionIdTag>;

// The queues and callbacks of a channel, as the network's thread uses them.
struct ConnectionEnds {
    std::shared_ptr<ChannelQueues> queues;
    std::function<void()> on_event;   // called on the network's thread: events wait in the queues
    std::function<void()> on_open{};  // called on the network's thread: the handshake is done
};

struct NetworkLimits {
    std::size_t payload_max = 0;   // largest payload that we send, or receive where we connected
    std::size_t asked_max = 0;     // largest payload on a connection that another peer opened
    std::size_t waiting_max = 0;   // bytes of a peer's frames that the sidecar's loop has not taken
    std::size_t accepted_max = 0;  // most connections that other peers opened
    Duration handshake_max{};      // longest time for connecting and handshake
    Duration silence_max{};        // longest time without an acknowledgement from the peer
};

// Counts of other peers' connections to us since the start.
struct NetworkCounts {
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;      // no certificate, or not a peer's certificate
    std::uint64_t crowded_out = 0;  // closed because of NetworkLimits::accepted_max
};

// The thread that encrypts: an event loop with the listener and all connections. Any thread may
// call its methods, which return at once. The destructor ends the thread and closes all.
class NetworkThread {
public:
    // Called on this thread for each accepted connection.
    using OnAccept = std::function<ConnectionEnds(ConnectionId)>;

    NetworkThread(const Clock& clock, const NetworkLimits& limits);
    NetworkThread(const NetworkThread&) = delete;
    NetworkThread& operator=(const NetworkThread&) = delete;
    ~NetworkThread();

    void listen(UniqueFd socket, OnAccept on_accept);

    // Sets the credentials of all connections that begin after this call returns.
    void set_credentials(const PeerCredentials& credentials);

    ConnectionId new_id() { return ConnectionId{next_id_.fetch_add(1)}; }

    void connect(ConnectionId id, std::string address, ConnectionEnds ends);
    void close(ConnectionId id);
    void flush(ConnectionId id);
    void read_on(ConnectionId id);

    [[nodiscard]] NetworkCounts counts() const;

private:
    struct Connection {
        std::unique_ptr<TlsConnection> tls;
        bool is_accepted = false;
    };

    void connect_now(ConnectionId id, const std::string& address, ConnectionEnds ends);
    void accept(UniqueFd socket);
    bool make_room();
    Status begin(ConnectionId id, UniqueFd socket, TlsEnd end, ConnectionEnds ends);
    void ended(ConnectionId id, const Error& error);
    void log_refusal(const Error& error);
    void erase(ConnectionId id);
    void with(ConnectionId id, void (TlsConnection::*method)());

    const NetworkLimits limits_;
    const std::shared_ptr<PayloadPool> pool_ = std::make_shared<PayloadPool>();
    std::atomic<std::uint64_t> next_id_{1};
    std::atomic<std::uint64_t> accepted_{0};
    std::atomic<std::uint64_t> refused_{0};
    std::atomic<std::uint64_t> crowded_out_{0};

    Guarded<TlsContext> context_{};  // nullptr: before the first credentials

    // Only the network's thread uses the members below.
    EventLoop loop_;
    OnAccept on_accept_{};
    std::size_t accepted_open_ = 0;
    std::optional<TimePoint> refusal_logged_{};
    std::unordered_map<ConnectionId, Connection> connections_{};
    std::optional<AcceptLoop> listener_{};

    std::jthread thread_;
};

}  // namespace stoker::sidecar
