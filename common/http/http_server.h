#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/headers.h"

// A small HTTP/1.1 server for metrics, probes and admission reviews: every size and time that a
// client controls has a limit. One I/O thread serves all connections.
namespace stoker::http {

struct ServerRequest {
    std::string method;  // "GET"; a HEAD request reaches the handler as GET and loses the body of
                         // its answer
    std::string target;  // as received: "/metrics?x=1"
    Headers headers{};
    std::string body{};
    std::string peer{};  // "127.0.0.1:34512"

    // The target without its query.
    [[nodiscard]] std::string_view path() const;
};

struct ServerResponse {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body{};
    Headers headers{};
};

// Runs on the server's thread and must not block; an exception becomes a 500.
using Handler = std::function<ServerResponse(const ServerRequest&)>;

// Sends the response to one request: call it once, from any thread, while the server exists. Later
// calls do nothing.
using Reply = std::function<void(ServerResponse)>;
// A handler that may respond later; otherwise like Handler. A request whose Reply is never called
// stays open until the server ends.
using LaterHandler = std::function<void(const ServerRequest&, Reply)>;

struct ServerOptions {
    // Listening address: "::" is IPv6 and IPv4 (IPv4 alone if the kernel has no IPv6); "127.0.0.1",
    // "::1".
    std::string address = "::";
    std::uint16_t port = 0;  // 0: any free one, see HttpServer::port()
    std::string cert_pem{};  // certificate chain and key: both for HTTPS (TLS 1.2 or later), none
                             // for plain HTTP
    std::string key_pem{};

    Bytes header_bytes_max = kib(16);  // larger: 431; also limits the lines of a chunked body
    Bytes body_bytes_max =
        mib(7);  // larger: 413; fits two objects of 3 MiB and a review around them
    // Beyond this limit, the server closes the connection that has waited longest without a whole
    // request, among those of the address that has the most waiting connections: a flood from one
    // address does not harm others. If no connection waits, the new one is closed.
    std::uint32_t connections_max = 256;

    // Time limits of each phase of a connection; a slower peer is disconnected.
    Duration handshake_timeout = std::chrono::seconds{5};
    Duration idle_timeout = std::chrono::seconds{90};   // between two requests
    Duration header_timeout = std::chrono::seconds{5};  // also until the first request's first byte
    Duration body_timeout = std::chrono::seconds{10};
    Duration answer_timeout = std::chrono::seconds{30};  // time for a LaterHandler to answer
    Duration write_timeout = std::chrono::seconds{10};
    Duration drain_timeout =
        std::chrono::seconds{5};  // for requests in progress when the server is destroyed
};

struct ServerStats {
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;  // connections closed because of connections_max
    std::uint64_t open = 0;
    std::uint64_t requests = 0;  // requests passed to the handler
};

// Thread-safe. Destruction closes the listener and idle connections, lets requests in progress
// finish within drain_timeout, then returns.
class HttpServer {
public:
    // Listens and starts to serve. kUnavailable: the address cannot be bound. kInvalidArgument: bad
    // address, certificate or key.
    static Result<std::unique_ptr<HttpServer>> start(ServerOptions options, Handler handler);
    static Result<std::unique_ptr<HttpServer>> start(ServerOptions options, LaterHandler handler);

    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    [[nodiscard]] std::uint16_t port() const;

    // Replaces the pair for new connections; open ones continue. After an error (not PEM, or a key
    // of another certificate) the old pair stays. kInvalidArgument without TLS.
    Status replace_certificate(const std::string& cert_pem, const std::string& key_pem);

    [[nodiscard]] ServerStats stats() const;

private:
    class Impl;
    explicit HttpServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::http
