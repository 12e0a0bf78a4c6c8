#include "operator/sidecars/connection_gate.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/config/host_port.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"

namespace stoker::control {

namespace {

constexpr int kBacklog = 1024;
constexpr int kWaitMs = 200;
constexpr int kEventsAtOnce = 64;
constexpr std::uint64_t kListenerId = 0;

std::atomic<std::uint64_t> all_cut_off{0};

struct Peer {
    std::string address;
    std::string whole;
};

// IPv4 peers of a dual-stack socket are written as IPv4.
Peer describe(const sockaddr_storage& from) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    std::uint16_t port = 0;
    if (from.ss_family == AF_INET6) {
        sockaddr_in6 six{};
        std::memcpy(&six, &from, sizeof six);
        port = ntohs(six.sin6_port);
        if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
            inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text.data(), text.size());
        } else {
            inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
        }
    } else {
        sockaddr_in four{};
        std::memcpy(&four, &from, sizeof four);
        port = ntohs(four.sin_port);
        inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    }
    return {text.data(), fmt::format("{} {}", text.data(), port)};
}

// Converts gRPC's "ipv6:%5B::1%5D:4711" or "ipv4:10.0.0.7:4711" to the form of describe().
std::string plain_peer(std::string_view peer) {
    peer.remove_prefix(std::min(peer.find(':') + 1, peer.size()));
    const std::size_t colon = peer.rfind(':');
    if (colon == std::string_view::npos) {
        return {};
    }
    std::string_view host = peer.substr(0, colon);
    for (const std::string_view open : {"%5B", "%5b", "["}) {
        if (host.starts_with(open)) {
            const std::size_t end = host.find_first_of("%]", open.size());
            host = host.substr(open.size(), end - open.size());
        }
    }
    return fmt::format("{} {}", host, peer.substr(colon + 1));
}

Status bind_and_listen(int socket, const std::string& host, std::uint16_t port) {
    const int on = 1;
    const int off = 0;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 six{};
    sockaddr_in four{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    const bool is_six = ::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
    if (!is_six && ::inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is not an IP address to listen on", host));
    }
    if (is_six) {
        ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    const auto* address =
        is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    const socklen_t size = is_six ? sizeof six : sizeof four;
    if (::bind(socket, address, size) != 0 || ::listen(socket, kBacklog) != 0) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("cannot listen on {} port {}: {}", host, port, std::strerror(errno)));
    }
    return {};
}

Result<UniqueFd> listen_on(const std::string& host, std::uint16_t port) {
    const bool six = host.find(':') != std::string::npos;
    UniqueFd socket{
        ::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!socket.valid() && six && host == "::") {
        return listen_on("0.0.0.0", port);  // a kernel without IPv6
    }
    if (!socket.valid()) {
        return fail(ErrorCode::kUnavailable, fmt::format("socket: {}", std::strerror(errno)));
    }
    STOKER_TRY_VOID(bind_and_listen(socket.get(), host, port));
    return socket;
}

std::uint16_t port_of(int socket) {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size);
    sockaddr_in six_or_four{};  // the port is at the same place in both
    std::memcpy(&six_or_four, &own, sizeof six_or_four);
    return ntohs(six_or_four.sin_port);
}

bool watch(int events, int descriptor, std::uint32_t what, std::uint64_t id) {
    epoll_event event{};
    event.events = what;
    event.data.u64 = id;
    return ::epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

ConnectionGate::ConnectionGate(
    UniqueFd listener, UniqueFd events, Options options, const Clock& clock)
    : options_(options),
      clock_(clock),
      listener_(std::move(listener)),
      events_(std::move(events)),
      port_(port_of(listener_.get())) {}

Result<std::unique_ptr<ConnectionGate>> ConnectionGate::open(
    const std::string& listen, Options options, const Clock& clock) {
    STOKER_TRY(const config::HostPort where, config::parse_host_port(listen));
    STOKER_TRY(UniqueFd listener, listen_on(where.host, where.port));
    UniqueFd events{::epoll_create1(EPOLL_CLOEXEC)};
    if (!events.valid() || !watch(events.get(), listener.get(), EPOLLIN, kListenerId)) {
        return fail(ErrorCode::kUnavailable, fmt::format("epoll: {}", std::strerror(errno)));
    }
    return std::unique_ptr<ConnectionGate>(
        new ConnectionGate(std::move(listener), std::move(events), options, clock));
}

ConnectionGate::~ConnectionGate() {
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
}

void ConnectionGate::start(Take take) {
    take_ = std::move(take);
    thread_ = start_thread("control-gate", [this](const std::stop_token& stop) { run(stop); });
}

void ConnectionGate::run(const std::stop_token& stop) {
    std::array<epoll_event, kEventsAtOnce> events{};
    while (!stop.stop_requested()) {
        const int count = ::epoll_wait(events_.get(), events.data(), kEventsAtOnce, kWaitMs);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t id = events.at(static_cast<std::size_t>(i)).data.u64;
            if (id == kListenerId) {
                accept_all();
            } else {
                end(id);
            }
        }
        cut_late();
    }
}

void ConnectionGate::accept_all() {
    for (int left = kBacklog; left > 0; --left) {
        sockaddr_storage from{};
        socklen_t size = sizeof from;
        const int connection = ::accept4(
            listener_.get(),
            reinterpret_cast<sockaddr*>(&from),
            &size,
            SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (connection < 0) {
            if (AcceptBackoff::is_exhausted(errno)) {
                const auto advice = backoff_.failed(clock_.now());
                if (advice.log) {
                    log::warning(
                        "cannot accept sidecars for now",
                        {{"error", std::strerror(errno)}, {"failuresNotLogged", advice.silent}});
                }
                std::this_thread::sleep_for(advice.pause);
            }
            return;
        }
        backoff_.accepted();
        Peer peer = describe(from);
        keep_watch(connection, std::move(peer.address), std::move(peer.whole));
        take_(listener_.get(), connection);
    }
}

void ConnectionGate::keep_watch(int connection, std::string address, std::string peer) {
    UniqueFd second{::fcntl(connection, F_DUPFD_CLOEXEC, 0)};
    const std::uint64_t id = next_id_++;
    if (!second.valid() || !watch(events_.get(), second.get(), EPOLLRDHUP, id)) {
        // Without a handle the connection must end; its reader then sees the end of the stream.
        ::shutdown(connection, SHUT_RDWR);
        ++all_cut_off;
        return;
    }
    auto waiting = waiting_.lock();
    waiting->emplace(
        id, HalfOpen{std::move(second), std::move(address), std::move(peer), clock_.now()});
    make_room(*waiting);
}

// Cuts the oldest connection of the address with the most connections.
void ConnectionGate::make_room(Waiting& waiting) {
    if (waiting.size() <= options_.half_open_max) {
        return;
    }
    std::map<std::string_view, std::size_t> counts;
    for (const auto& [id, one] : waiting) {
        ++counts[one.address];
    }
    auto worst = waiting.begin();
    for (auto at = waiting.begin(); at != waiting.end(); ++at) {
        if (counts[at->second.address] > counts[worst->second.address]) {
            worst = at;
        }
    }
    cut(waiting, worst);
}

void ConnectionGate::cut_late() {
    auto waiting = waiting_.lock();
    while (!waiting->empty() &&
           clock_.now() - waiting->begin()->second.since > options_.half_open_timeout) {
        cut(*waiting, waiting->begin());
    }
}

// Ends the connection; the thread that accepted it closes the descriptor afterwards.
void ConnectionGate::cut(Waiting& waiting, Waiting::iterator at) {
    ::shutdown(at->second.watch.get(), SHUT_RDWR);
    release(waiting, at);
    ++all_cut_off;
}

// Closing this descriptor is not enough: epoll continues as long as its duplicate is open.
void ConnectionGate::release(Waiting& waiting, Waiting::iterator at) {
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, at->second.watch.get(), nullptr);
    waiting.erase(at);
}

// One side closed the connection before authentication, so the gate forgets it.
void ConnectionGate::end(std::uint64_t id) {
    auto waiting = waiting_.lock();
    if (const auto at = waiting->find(id); at != waiting->end()) {
        ::shutdown(at->second.watch.get(), SHUT_RDWR);
        release(*waiting, at);
    }
}

std::uint64_t ConnectionGate::cut_off_total() {
    return all_cut_off;
}

void ConnectionGate::admit(std::string_view peer) {
    const std::string wanted = plain_peer(peer);
    auto waiting = waiting_.lock();
    const auto at = std::find_if(waiting->begin(), waiting->end(), [&](const auto& entry) {
        return entry.second.peer == wanted;
    });
    if (at != waiting->end()) {
        release(*waiting, at);
    }
}

}  // namespace stoker::control
