#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/clock.h"
#include "operator/kube/transport.h"
#include "operator/kube/watch.h"

namespace stoker::control {

// Drives one WatchMachine over a transport. The socket is read on a thread of the transport, and
// what an event leads to runs right there, so nothing queues up between server and store: a slow
// consumer is never cut off by the server for want of memory, only for want of speed.
class WatchLoop {
public:
    // Called for each event in order, never twice at once, from the thread of run() or one of the
    // transport.
    using Apply = std::function<void(WatchEvent&& event)>;

    // `transport` and `clock` must outlive it.
    WatchLoop(
        ApiTransport& transport,
        WatchOptions options,
        Apply apply,
        const Clock& clock,
        std::uint64_t seed);

    // Lists and watches until a stop is requested.
    void run(const std::stop_token& stop);

private:
    void list(const SendRequest& send, const std::stop_token& stop);
    void watch(const SendRequest& send, const std::stop_token& stop);
    void deliver(WatchEvents events);

    ApiTransport* transport_;
    WatchMachine machine_;
    Apply apply_;
    const Clock* clock_;
};

}  // namespace stoker::control
