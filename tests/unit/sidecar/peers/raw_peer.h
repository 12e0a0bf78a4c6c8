#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/unique_fd.h"
#include "sidecar/peers/openssl.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::test {

// A connection to a TlsNetwork whose every byte the test chooses. Blocks.
class RawPeer {
public:
    struct Options {
        std::optional<sidecar::PeerCredentials> credentials{};  // nullopt: no certificate
        std::string protocol = "stoker-peer/1";                 // "": none is offered
        int version_max = 0;                                    // 0: TLS 1.3
    };

    // Connects by TCP only.
    explicit RawPeer(const std::string& address);

    // False: the handshake failed at this end.
    bool shake_hands(const Options& options);

    // False: the connection is broken.
    bool send(std::span<const std::byte> bytes);

    // True: the other end closed the connection, after it had sent `bytes_before`.
    bool is_closed_by_peer();

    // The kernel drops all that arrives from now on, as if the link were cut.
    void cut_link();

    // Closes the TCP connection without ending TLS.
    void close();

    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    UniqueFd socket_;
    sidecar::SslPtr tls_{};
};

}  // namespace stoker::test
