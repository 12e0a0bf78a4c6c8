#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/result.h"

// Connections between sidecars on different nodes: the interface to the network. The real one is
// TLS over TCP; the simulated world has its own. Everything here is called on the sidecar's loop
// thread, and calls back on it.
namespace stoker::sidecar {

// Bytes, and the object that keeps these bytes valid.
struct HeldBytes {
    std::span<const std::byte> bytes{};
    std::shared_ptr<const void> holder{};
};

// One message between two peers: a head, and for some messages a payload.
struct PeerFrame {
    static constexpr std::size_t kHeadMax = std::size_t{64} << 10U;

    std::vector<std::byte> head{};  // 1 to kHeadMax bytes
    HeldBytes payload{};            // at most the network's payload_max
};

// The other end's identity, by its certificate: a sidecar of this namespace with these datasets.
struct PeerIdentity {
    std::string namespace_name;
    std::vector<std::string> dataset_uids;

    bool operator==(const PeerIdentity&) const = default;
};

// Receives the events of one channel.
class PeerEvents {
public:
    virtual ~PeerEvents() = default;

    // The handshake is done. Called once, before any frame.
    virtual void on_open(const PeerIdentity& peer) = 0;
    virtual void on_frame(PeerFrame frame) = 0;

    // unsent_bytes() has fallen to PeerChannel::kUnsentLow after being above it.
    virtual void on_drained() {}

    // The connection could not be made, broke, or the other end closed it. This is the last event.
    virtual void on_end(const Error& error) = 0;
};

// An ordered, encrypted connection to an authenticated peer. Destroy it to close it; it delivers no
// event afterwards. It may be destroyed inside an event.
class PeerChannel {
public:
    static constexpr std::size_t kUnsentLow = std::size_t{1} << 20U;

    virtual ~PeerChannel() = default;

    // Queues the frame; never blocks. Frames sent before on_open() wait for it.
    virtual void send(PeerFrame frame) = 0;

    // Bytes queued and not yet passed to the kernel.
    [[nodiscard]] virtual std::size_t unsent_bytes() const = 0;
};

// PEM texts: a certificate signed by the operator's CA, its key, and the CAs to trust for peers.
struct PeerCredentials {
    std::string chain;
    std::string key;
    std::string trust;

    bool operator==(const PeerCredentials&) const = default;
};

class PeerNetwork {
public:
    // Called with each incoming connection: returns the receiver of its events, which must outlive
    // the channel. The channel reads nothing before the call has returned.
    using Accept = std::function<PeerEvents&(std::unique_ptr<PeerChannel>)>;

    virtual ~PeerNetwork() = default;

    // The largest payload that a frame may carry.
    [[nodiscard]] virtual std::size_t payload_max() const { return std::size_t{64} << 20U; }

    // Accepts connections from now on. Call it once. Returns "host:port", where peers reach us.
    virtual Result<std::string> listen(Accept accept) = 0;

    // Replaces the credentials of new connections; existing ones stay. Before the first call, no
    // connection is accepted and connect() ends with kUnavailable.
    virtual void set_credentials(PeerCredentials credentials) = 0;

    // Connects to "host:port". Returns at once; on_open() or on_end() follows.
    virtual std::unique_ptr<PeerChannel> connect(
        const std::string& address, PeerEvents& events) = 0;
};

}  // namespace stoker::sidecar
