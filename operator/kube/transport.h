#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/kube/request.h"

namespace stoker::control {

// A complete response. Any status is a response.
struct ApiResponse {
    int status = 0;
    std::string body{};
    std::string retry_after{};            // the raw header; "" without one
    std::vector<std::string> warnings{};  // texts of the Warning headers
};

// Receiver of a stream. stream() calls both on the thread of its caller, one at a time, before it
// returns.
struct ApiStreamSink {
    // Status 200: bytes will follow. Any other status ends the stream and is returned as its
    // response.
    std::function<void()> on_open;
    // Each piece as it arrives; the view is valid during the call. false closes the stream.
    std::function<bool(std::string_view bytes)> on_bytes;
};

// The end of a stream: it was open and ended (status 200, no body), or it was refused with this
// response.
using ApiStreamEnd = ApiResponse;

// The interface to one API server: sends the requests of request.h unchanged, once. It adds scheme,
// host, User-Agent and credentials; after a 401 it reloads the credentials and sends once more if
// they changed. No other retries. Thread-safe; calls block until they are done, `time_limit` is
// over or `stop` is requested.
//
// Errors (no response): kUnavailable (refused, cut, no such host), kDeadlineExceeded, kForbidden
// (the server's certificate is not trusted), kResourceExhausted (the response is too long),
// kCancelled, kInvalidArgument (bad endpoint).
class ApiTransport {
public:
    virtual ~ApiTransport() = default;

    virtual Result<ApiResponse> call(
        const ApiRequest& request, Duration time_limit, std::stop_token stop) = 0;

    // Returns when the stream ends. An error means that it was cut or never opened; on_open was
    // called if it was open.
    virtual Result<ApiStreamEnd> stream(
        const ApiRequest& request,
        Duration time_limit,
        const ApiStreamSink& sink,
        std::stop_token stop) = 0;
};

}  // namespace stoker::control
