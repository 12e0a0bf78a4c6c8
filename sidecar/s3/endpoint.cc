#include "sidecar/s3/endpoint.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/config/address_ranges.h"
#include "common/config/host_port.h"
#include "common/log/log.h"

namespace stoker::s3 {

namespace {

constexpr int kBacklog = 1024;

struct Address {
    sockaddr_storage storage{};
    socklen_t bytes = 0;
};

Result<Address> loopback_address(const std::string& text) {
    if (!config::is_loopback_peer(text)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("s3Listen: \"{}\" is not a loopback address with a port", text));
    }
    STOKER_TRY(const config::HostPort place, config::parse_host_port(text));
    Address address;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    if (::inet_pton(AF_INET, place.host.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(place.port);
        address.bytes = sizeof(sockaddr_in);
        return address;
    }
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = in6addr_loopback;
    v6->sin6_port = htons(place.port);
    address.bytes = sizeof(sockaddr_in6);
    return address;
}

// Sets congestion control Reno: the host may use BBR, which paces packets by timers, at the cost of
// a fifth of the rate on loopback. Accepted sockets inherit Reno, which every kernel has.
void never_pace(int listener) {
    constexpr std::string_view kAlgorithm = "reno";
    ::setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, kAlgorithm.data(), kAlgorithm.size());
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::start(
    const sidecar::SidecarConfig& config,
    LoopbackKey key,
    const sidecar::Environment& environment,
    EventLoop& loop,
    EndpointLimits limits) {
    STOKER_TRY(auto places, Places::make(config, environment, loop.clock()));
    std::unique_ptr<Endpoint> endpoint{
        new Endpoint{config, std::move(key), std::move(places), loop, limits}};
    STOKER_TRY_VOID(endpoint->listen(config.s3_listen, loop));
    return endpoint;
}

Endpoint::Endpoint(
    const sidecar::SidecarConfig& config,
    LoopbackKey key,
    std::unique_ptr<Places> places,
    EventLoop& loop,
    const EndpointLimits& limits)
    : key_(std::move(key)),
      places_(std::move(places)),
      connections_(std::make_shared<std::atomic<std::size_t>>(0)),
      links_(std::make_unique<attached::SidecarLinks>(
          config.socket_path, places_->datasets(), loop.clock())),
      fetches_(std::make_unique<attached::FetchPool>(
          config.socket_path, loop.clock(), limits.fetch_threads)),
      forwards_(std::make_unique<ForwardPool>(
          *places_, loop.clock(), limits.forward_threads, limits.forward_patience)) {
    for (std::size_t at = 0; at < limits.event_threads; ++at) {
        threads_.push_back(std::make_unique<EventThread>(
            key_, *places_, loop.clock(), *fetches_, *forwards_, connections_, limits.connections));
    }
}

// The event threads' loops stop first and are destroyed last, because the pools post to them.
Endpoint::~Endpoint() {
    accepts_.reset();
    for (const auto& thread : threads_) {
        thread->stop();
    }
    forwards_.reset();
    fetches_.reset();
    threads_.clear();
}

Status Endpoint::listen(const std::string& text, EventLoop& loop) {
    STOKER_TRY(Address address, loopback_address(text));
    auto* generic = reinterpret_cast<sockaddr*>(&address.storage);
    UniqueFd socket{::socket(generic->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const int on = 1;
    if (!socket.valid() ||
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        ::bind(socket.get(), generic, address.bytes) != 0 ||
        ::listen(socket.get(), kBacklog) != 0 ||
        ::getsockname(socket.get(), generic, &address.bytes) != 0) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("cannot listen at {}: {}", text, std::generic_category().message(errno)));
    }
    never_pace(socket.get());
    port_ = ntohs(
        generic->sa_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(generic)->sin_port
                                      : reinterpret_cast<const sockaddr_in6*>(generic)->sin6_port);
    accepts_ =
        std::make_unique<AcceptLoop>(loop, std::move(socket), "s3", [this](UniqueFd accepted) {
            on_accept(std::move(accepted));
        });
    return {};
}

void Endpoint::on_accept(UniqueFd socket) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    threads_[next_thread_++ % threads_.size()]->adopt({std::move(socket), connections_});
}

void Endpoint::end_soon() {
    accepts_.reset();
    for (const auto& thread : threads_) {
        thread->end_soon();
    }
}

}  // namespace stoker::s3
