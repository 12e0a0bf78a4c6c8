#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "common/http/http_connection.h"
#include "common/http/http_server.h"

// Serves the requests of one connection in order. Private to common/http.
namespace stoker::http {

struct ServerCounters {
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> open{0};
    std::atomic<std::uint64_t> requests{0};
};

// The server's state that sessions use; outlives every session. Only the server's thread touches
// the members without a lock or an atomic type.
struct SessionHost {
    ServerOptions options;
    LaterHandler handler;
    ServerCounters counters;
    bool draining = false;
    std::set<HttpConnection*> idle;  // idle between two requests; closed when draining starts
    // Connections without a whole request, including idle ones, in the order in which they began to
    // wait. One of them is closed if there are too many connections.
    std::map<std::uint64_t, HttpConnection*> waiting;
    std::uint64_t waits = 0;  // a running number
};

// Closes the longest-waiting connection of the address that has the most waiting connections.
// False: no connection waits.
bool end_a_waiting_one(SessionHost& host);

// Serves one connection until either side closes it.
boost::asio::awaitable<void> serve_connection(
    SessionHost& host, std::shared_ptr<HttpConnection> connection);

}  // namespace stoker::http
