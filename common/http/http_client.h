#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/strong.h"
#include "common/http/headers.h"
#include "common/http/proxy.h"

// HTTP client interface, for short calls and for endless streams (watches). HTTP/1.1 only: each
// stream has its own connection and cannot stall another one.
namespace stoker::http {

using CallId = Strong<std::uint64_t, struct CallIdTag>;

// The URL is sent unchanged: neither normalised ("/a/../b" stays) nor encoded, so encode it first.
// A duration of zero means no limit.
struct HttpRequest {
    std::string method = "GET";
    std::string url;  // http:// or https://
    Headers headers{};
    std::string body{};
    Duration connect_timeout = std::chrono::seconds{5};  // name look-up, TCP and TLS together
    Duration total_timeout = std::chrono::seconds{30};   // from start() to the last byte
    Duration idle_timeout{};             // longest time without a byte from the server
    Bytes response_bytes_max = mib(64);  // body only, after decompression
    bool accept_gzip = false;            // ask for compression; decoded on the fly
    // Number of redirects to follow; 0: a redirect is the response. Never from https to http, nor
    // to another host with an Authorization header. A redirect to loopback, link-local or a
    // metadata service ends the call with kForbidden, unless `url` is such an address.
    std::uint32_t redirects_max = 0;
};

// Callbacks for a response. All three run on the client's own thread, one at a time per call. They
// must not block, because all other calls of the client would wait. They may call start() and
// cancel(). Empty functions are skipped. An exception of on_response or on_data ends the call with
// kResourceExhausted (std::bad_alloc) or kInternal. BlockingClient has its own rules for threads.
struct HttpSink {
    // Called once, after the final header (1xx are skipped). Any status is a response: 404 is not
    // an error here.
    std::function<void(int status, const Headers& headers)> on_response{};
    // Called for each piece of the body as it arrives. The view is valid during the call. Return
    // false to cancel the rest.
    std::function<bool(std::span<const std::byte> data)> on_data{};
    // Called exactly once, last. The sink is destroyed afterwards.
    std::function<void(Status status)> on_done{};
};

struct HttpResponse {
    int status = 0;
    Headers headers{};
    std::string body{};
};

struct ClientOptions {
    std::string ca_file{};      // PEM bundle to trust instead of the system's
    std::string ca_pem{};       // the same as text; wins over ca_file
    std::string unix_socket{};  // connect here for every URL; "": to the address in the URL
    bool verify = true;  // certificate and host name; off only for tests or by explicit setting
    std::uint32_t connections_max = 0;  // open at once; more calls wait in order; 0: no limit
    // Connections kept open for reuse, at most 60 s. BlockingClient ignores this number: it keeps
    // all connections that it used, and closes those idle for 60 s when a later call ends.
    std::uint32_t idle_connections = 16;
    std::string user_agent = "stoker/" STOKER_VERSION;
    ProxySettings proxies{};  // none; the environment is ignored
};

// Thread-safe. A GET, HEAD, PUT, DELETE or OPTIONS may be sent twice if a pooled connection is
// dead; any other method is sent at most once. There are no other retries.
//
// Errors: kUnavailable (no connection, name not found, cut off), kDeadlineExceeded (total or idle
// time-out), kResourceExhausted (response_bytes_max or 64 KiB of headers exceeded), kForbidden (the
// server's certificate is not trusted, a forbidden redirect), kInvalidArgument (URL, certificate,
// key, too many redirects), kCancelled.
// Messages quote libcurl, never a header.
class HttpClient {
public:
    // Ends every call with kCancelled, then returns. Must not run in a callback.
    virtual ~HttpClient() = default;

    // Returns at once. During destruction, on_done(kCancelled) is called before start() returns.
    virtual CallId start(HttpRequest request, HttpSink sink) = 0;

    // Ends the call soon with kCancelled, unless it has ended already. Never blocks; unknown ids
    // are ignored.
    virtual void cancel(CallId id) = 0;

    // Runs `task` on the callbacks' thread, at `when` or soon if that has passed. The task must not
    // block. run_at() never blocks; the client's destruction drops tasks not yet run.
    virtual void run_at(TimePoint when, std::function<void()> task) = 0;

    // Waits for the whole response; `stop` cancels it. Must not run in a callback.
    Result<HttpResponse> call(HttpRequest request, std::stop_token stop = {});

protected:
    // True on the thread that runs the callbacks.
    [[nodiscard]] virtual bool on_callback_thread() const = 0;
};

// Runs libcurl's multi interface on one thread. One client per set of credentials: replace it after
// a rotation. `clock` must outlive the client. kInvalidArgument: the CA file cannot be read, or a
// certificate has no key.
Result<std::unique_ptr<HttpClient>> make_curl_client(ClientOptions options, const Clock& clock);

}  // namespace stoker::http
