#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/accept_backoff.h"
#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

// Private to operator/sidecars.
namespace stoker::control {

// Accepts connections for a server without limits of its own (gRPC 1.51) and hands each one over at
// once. A connection is half open from then until admit(): one without a valid token is cut off
// after a while. Beyond the limit, the oldest one of the address with the most half-open
// connections is cut off at once. So a flood from one address leaves others alone.
//
// Thread-safe. `take` is called on the gate's own thread.
class ConnectionGate {
public:
    struct Options {
        std::size_t half_open_max = 512;
        Duration half_open_timeout = std::chrono::seconds{15};
    };

    // Takes ownership of the connection and closes it eventually.
    using Take = std::function<void(int listener, int connection)>;

    // Listens. kInvalidArgument: `listen` is not "host:port". kUnavailable: it cannot be bound.
    static Result<std::unique_ptr<ConnectionGate>> open(
        const std::string& listen, Options options, const Clock& clock);

    // Hands over no more connections; earlier ones continue.
    ~ConnectionGate();
    ConnectionGate(const ConnectionGate&) = delete;
    ConnectionGate& operator=(const ConnectionGate&) = delete;

    // Starts to accept. Call it once.
    void start(Take take);

    // Marks the caller at `peer` ("ipv4:10.0.0.7:4711", gRPC's format) as authenticated. Harmless
    // for an unknown peer.
    void admit(std::string_view peer);

    [[nodiscard]] std::uint16_t port() const { return port_; }

    [[nodiscard]] std::size_t half_open() const { return waiting_.lock()->size(); }

    // Connections that were cut off, summed over all gates of the program.
    [[nodiscard]] static std::uint64_t cut_off_total();

private:
    // A second descriptor of a connection that the server reads.
    struct HalfOpen {
        UniqueFd watch;
        std::string address;
        std::string peer;  // address and port
        TimePoint since;
    };

    // Half-open connections in order of arrival.
    using Waiting = std::map<std::uint64_t, HalfOpen>;

    ConnectionGate(UniqueFd listener, UniqueFd events, Options options, const Clock& clock);

    void run(const std::stop_token& stop);
    void accept_all();
    void keep_watch(int connection, std::string address, std::string peer);
    void make_room(Waiting& waiting);
    void cut_late();
    void cut(Waiting& waiting, Waiting::iterator at);
    void release(Waiting& waiting, Waiting::iterator at);
    void end(std::uint64_t id);

    Options options_;
    const Clock& clock_;
    AcceptBackoff backoff_;
    UniqueFd listener_;
    UniqueFd events_;  // epoll
    std::uint16_t port_ = 0;
    Take take_;
    std::uint64_t next_id_ = 1;  // 0 is the listener
    mutable Guarded<Waiting> waiting_;
    std::jthread thread_;
};

}  // namespace stoker::control
