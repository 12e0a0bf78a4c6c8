#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/agents/agent_registry.h"
#include "operator/agents/authenticator.h"

namespace stoker::control {

struct ControlServiceOptions {
    std::string listen;                            // "[::]:9443"; port 0 takes a free one
    std::string certificate_directory;             // tls.crt (chain) and tls.key, PEM
    std::chrono::seconds certificate_refresh{30};  // how often the files are read again
    std::size_t session_count_max = 20000;
    Bytes message_bytes_max = kib(256);
    Duration hello_timeout = std::chrono::seconds{10};  // token included
    std::size_t reports_per_step = 10;
};

// The gRPC server that sidecars attach to: proto/control/v1. It listens from start() to its
// destruction, so only the leader makes one: a dial to any other replica is refused (UNAVAILABLE
// for the caller), and the next dial may reach the leader.
//
// Thread-safe. gRPC's threads call registry and authenticator, which must outlive it.
class ControlService {
public:
    // kInvalidArgument: the address. kNotFound, kCorruption: certificate or key cannot be read or
    // do not fit. kUnavailable: the port is taken.
    static Result<std::unique_ptr<ControlService>> start(
        ControlServiceOptions options,
        AgentRegistry& registry,
        Authenticator& authenticator,
        const Clock& clock);

    // Ends every session with UNAVAILABLE and waits until gRPC is done with them: at most two
    // seconds for the polite part. The authenticator may call back later; nothing happens then.
    virtual ~ControlService() = default;

    [[nodiscard]] virtual std::uint16_t port() const = 0;

    // Once a second: closes silent strangers, gives each session its next reports_per_step.
    virtual void step(TimePoint now) = 0;

    [[nodiscard]] virtual std::size_t session_count() const = 0;
};

}  // namespace stoker::control
