#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/sidecars/authenticator.h"
#include "operator/sidecars/node_programs.h"
#include "operator/sidecars/served_certificate.h"
#include "operator/sidecars/sidecar_registry.h"

namespace stoker::control {

struct ControlServiceOptions {
    std::string listen;  // "[::]:9443"; port 0 takes a free one
    // Read at each handshake: new connections get the newest certificate, open ones continue.
    CurrentCertificate certificate;
    std::size_t session_count_max = 20000;
    // Limit of connections without a valid token: connection_gate.h.
    std::size_t half_open_max = 512;
    Duration half_open_timeout = std::chrono::seconds{15};
    Bytes message_bytes_max = kib(256);  // of a sidecar
    // Limits of a node program's message and of the response. The first is gRPC's limit for every
    // message, but no message is read before its token is verified.
    Bytes node_report_bytes_max = mib(4);
    Bytes node_orders_bytes_max = mib(16);
    std::size_t node_call_count_max = 1024;             // concurrent calls
    Duration hello_timeout = std::chrono::seconds{10};  // includes the token
    std::size_t reports_per_step = 10;
    bool signs_peers = false;  // sidecars may ask for peer certificates
};

// The gRPC server for sidecars (proto/control/v1) and node programs (proto/node/v1). It listens
// from start() to its destruction, so only the leader creates one: a dial to any other replica is
// refused (UNAVAILABLE for the caller), and the next dial may reach the leader.
//
// Thread-safe. gRPC's threads call registries and authenticator, which must outlive it.
class ControlService {
public:
    // kNotFound: there is no certificate yet. kCorruption: its key does not match. kUnavailable:
    // the port is taken, or the address is invalid.
    static Result<std::unique_ptr<ControlService>> start(
        ControlServiceOptions options,
        SidecarRegistry& registry,
        NodePrograms nodes,
        Authenticator& authenticator,
        const Clock& clock);

    // Ends every session with UNAVAILABLE and waits for gRPC to end; after two seconds it cancels
    // open calls. Later callbacks of the authenticator are ignored.
    virtual ~ControlService() = default;

    [[nodiscard]] virtual std::uint16_t port() const = 0;

    // Call it once a second: closes connections without a hello, gives each session its next
    // reports_per_step.
    virtual void step(TimePoint now) = 0;

    [[nodiscard]] virtual std::size_t session_count() const = 0;

    [[nodiscard]] virtual std::size_t half_open_count() const = 0;
};

}  // namespace stoker::control
