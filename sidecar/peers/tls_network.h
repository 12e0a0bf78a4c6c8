#pragma once

#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/runtime/event_loop.h"
#include "sidecar/peers/network_thread.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::sidecar {

// PeerNetwork over TLS 1.3 on TCP, certificates on both sides. A thread of its own encrypts; events
// come on `loop`, the sidecar's, which outlives this. Channels may outlive it; they are then
// silent. Payloads of sent frames are released on `loop`.
//
// on_end() says kForbidden if a certificate was refused here or there, kCorruption for a frame with
// lengths out of bounds, kDeadlineExceeded for a handshake that takes too long, kInvalidArgument
// for an address that is none, kUnavailable for all else. The other end may refuse our certificate
// after on_open() of connect(): TLS 1.3 lets the client finish first. Accept is called after the
// handshake, so strangers never reach it.
//
// A destroyed channel drops its queued frames. A peer that leaves its frames unread for
// `silence_max` is ended like a silent one.
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
