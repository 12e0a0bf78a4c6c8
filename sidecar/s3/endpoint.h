#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/runtime/accept_loop.h"
#include "common/runtime/event_loop.h"
#include "sidecar/attached/fetch_pool.h"
#include "sidecar/attached/sidecar_links.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/s3/event_thread.h"
#include "sidecar/s3/forward_pool.h"
#include "sidecar/s3/places.h"

namespace stoker::s3 {

struct EndpointLimits {
    std::size_t connections = 1024;
    std::size_t event_threads = 2;
    std::size_t fetch_threads = 16;
    std::size_t forward_threads = 64;
    Duration forward_patience = std::chrono::seconds{60};
};

// The S3 endpoint of a pod: its socket, threads and datasets. Use it on the loop's thread.
class Endpoint {
public:
    // Listens at config.s3_listen. `config`, `loop` and its clock must outlive the endpoint. Errors:
    // as Places::make(); kUnavailable: it cannot listen; kInvalidArgument: no loopback address.
    static Result<std::unique_ptr<Endpoint>> start(
        const sidecar::SidecarConfig& config,
        LoopbackKey key,
        const sidecar::Environment& environment,
        EventLoop& loop,
        EndpointLimits limits = {});
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    ~Endpoint();

    // Accepts no more connections; ends each connection after its current request.
    void end_soon();

    [[nodiscard]] std::size_t connections() const {
        return connections_->load(std::memory_order_relaxed);
    }

    // The port at which the socket listens.
    [[nodiscard]] std::uint16_t port() const { return port_; }

private:
    Endpoint(
        const sidecar::SidecarConfig& config,
        LoopbackKey key,
        std::unique_ptr<Places> places,
        EventLoop& loop,
        const EndpointLimits& limits);

    Status listen(const std::string& address, EventLoop& loop);
    void on_accept(UniqueFd socket);

    LoopbackKey key_;
    std::unique_ptr<Places> places_;
    ClientSocket::Counter connections_;
    std::uint16_t port_ = 0;
    std::unique_ptr<attached::SidecarLinks> links_;
    std::unique_ptr<attached::FetchPool> fetches_;
    std::unique_ptr<ForwardPool> forwards_;
    std::vector<std::unique_ptr<EventThread>> threads_;
    std::size_t next_thread_ = 0;
    std::unique_ptr<AcceptLoop> accepts_;
};

}  // namespace stoker::s3
