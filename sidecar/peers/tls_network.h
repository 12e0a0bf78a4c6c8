#pragma once

#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/runtime/event_loop.h"
#include "sidecar/peers/network_thread.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::sidecar {

// PeerNetwork over TLS 1.3 on TCP, with certificates on both sides. Its own thread encrypts; events
// are delivered on `loop`, the sidecar's, which must outlive this object. Channels may outlive it;
// they then deliver nothing. Payloads of sent frames are released on `loop`.
//
// on_end() reports kForbidden if a certificate was refused by us or by the peer, kCorruption for a
// frame with lengths out of bounds, kDeadlineExceeded for a handshake that takes too long,
// kInvalidArgument for an invalid address, and kUnavailable otherwise. The peer may refuse our
// certificate after on_open() of connect(): TLS 1.3 lets the client finish first. Accept is called
// after the handshake, so strangers never reach it.
//
// Destroying a channel drops its queued frames. A peer that does not read its frames for
// `silence_max` is disconnected like a silent one.
class TlsNetwork final : public PeerNetwork {
public:
    struct Options {
        std::string host;        // IP address to listen on
        std::uint16_t port = 0;  // 0: any free one
        // Address at which peers reach it: "host:port", or a host (IPv6 in brackets) to which the
        // bound port is added. Empty: the address at which it listens.
        std::string address{};
        NetworkLimits limits{
            .payload_max = std::size_t{64} << 20U,
            .asked_max = std::size_t{64} << 10U,
            .waiting_max = std::size_t{4} << 20U,
            .accepted_max = 1024,
            .handshake_max = std::chrono::seconds{10},
            .silence_max = std::chrono::seconds{30}};
    };

    TlsNetwork(EventLoop& loop, Options options);
    ~TlsNetwork() override;

    [[nodiscard]] std::size_t payload_max() const override { return options_.limits.payload_max; }

    // kInvalidArgument: `host` is no IP address. Errors of posix_error().
    Result<std::string> listen(Accept accept) override;

    // Credentials that cannot be parsed are logged and ignored.
    void set_credentials(PeerCredentials credentials) override;

    std::unique_ptr<PeerChannel> connect(const std::string& address, PeerEvents& events) override;

    [[nodiscard]] NetworkCounts counts() const { return thread_->counts(); }

private:
    const Options options_;
    LoopTasks tasks_;
    std::shared_ptr<NetworkThread> thread_;
};

}  // namespace stoker::sidecar
