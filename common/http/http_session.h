#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include "common/http/http_connection.h"
#include "common/http/http_server.h"

// The requests of one connection, one after the other. Private to common/http.
namespace stoker::http {

struct ServerCounters {
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> open{0};
    std::atomic<std::uint64_t> requests{0};
};

// What a session needs of its server; outlives every session. Only the server's thread touches the
// plain members.
struct SessionHost {
    ServerOptions options;
    LaterHandler handler;
    ServerCounters counters;
    bool draining = false;
    std::set<HttpConnection*> idle;  // between two requests; closed when draining starts
};

// Serves one connection until either side ends it.
boost::asio::awaitable<void> serve_connection(
    SessionHost& host, std::shared_ptr<HttpConnection> connection);

}  // namespace stoker::http
