#include "sidecar/peers/tcp.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/base/posix_error.h"
#include "common/config/host_port.h"

namespace stoker::sidecar {

namespace {

constexpr int kBacklog = 128;
constexpr int kProbes = 4;

struct AddressFree {
    void operator()(addrinfo* address) const { ::freeaddrinfo(address); }
};

using Address = std::unique_ptr<addrinfo, AddressFree>;

Result<Address> resolve(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("{} is not an IP address", host));
    }
    return Address{found};
}

Result<UniqueFd> stream_socket(const addrinfo& address) {
    UniqueFd socket{
        ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP)};
    if (!socket.valid()) {
        return fail_errno("creating a socket", "for peers");
    }
    return socket;
}

void set_number(int socket, int level, int option, int value) {
    // Sets one option. All supported kernels have it; without it the connection still works.
    [[maybe_unused]] const int result = ::setsockopt(socket, level, option, &value, sizeof(value));
}

}  // namespace

Result<UniqueFd> listen_tcp(const std::string& host, std::uint16_t port) {
    STOKER_TRY(const Address address, resolve(host, port));
    STOKER_TRY(UniqueFd socket, stream_socket(*address));
    set_number(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (::bind(socket.get(), address->ai_addr, address->ai_addrlen) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {
        return fail_errno("listening for peers on", host);
    }
    return socket;
}

Result<std::string> local_address(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::getsockname(socket, generic, &size) != 0) {
        return fail_errno("reading", "the address of a socket");
    }
    if (::getnameinfo(
            generic,
            size,
            host.data(),
            host.size(),
            port.data(),
            port.size(),
            NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return fail(ErrorCode::kInternal, "a socket has no address");
    }
    return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                         : fmt::format("{}:{}", host.data(), port.data());
}

Result<UniqueFd> connect_tcp(const std::string& address) {
    STOKER_TRY(const config::HostPort parsed, config::parse_host_port(address));
    STOKER_TRY(const Address resolved, resolve(parsed.host, parsed.port));
    STOKER_TRY(UniqueFd socket, stream_socket(*resolved));
    if (::connect(socket.get(), resolved->ai_addr, resolved->ai_addrlen) != 0 &&
        errno != EINPROGRESS) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("connecting to peer {}: {}", address, std::strerror(errno)));
    }
    return socket;
}

Status connect_result(int socket) {
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error != 0) {
        return fail(
            ErrorCode::kUnavailable, fmt::format("connecting to a peer: {}", std::strerror(error)));
    }
    return {};
}

// Sets options. Keepalive probes detect a silent peer while nothing is unacknowledged; the user
// time-out ends both kinds of silence.
void set_peer_options(int socket, Duration silence_max) {
    const auto seconds =
        std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(silence_max).count(), 3);
    const int first = static_cast<int>(seconds / 3);
    const int between = std::max(static_cast<int>(seconds / 6), 1);
    set_number(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_number(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_number(socket, IPPROTO_TCP, TCP_KEEPIDLE, first);
    set_number(socket, IPPROTO_TCP, TCP_KEEPINTVL, between);
    set_number(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set_number(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(seconds * 1000));
}

}  // namespace stoker::sidecar
