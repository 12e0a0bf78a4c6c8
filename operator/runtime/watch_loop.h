#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/clock.h"
#include "operator/kube/transport.h"
#include "operator/kube/watch.h"

namespace stoker::control {

// Drives one WatchMachine over a transport. A thread of the transport reads the socket and applies
// each event directly, so no events queue between server and store: the server may cut off a slow
// consumer for its speed, but not for its memory.
class WatchLoop {
public:
    // Called for each event in order, one at a time, on the thread of run() or one of the
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
