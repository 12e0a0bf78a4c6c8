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

// An answer with all its bytes. Any status is an answer.
struct ApiResponse {
    int status = 0;
    std::string body{};
    std::string retry_after{};            // the header as it came; "" without one
    std::vector<std::string> warnings{};  // texts of the Warning headers
};

// Where a stream goes. Both are called while stream() runs, one after the other, from a thread of
// the transport.
struct ApiStreamSink {
    // Status 200: bytes will follow. Any other status ends the stream and comes back as its
    // response.
    std::function<void()> on_open;
    // Each piece as it arrives; the view ends with the call. false: enough, close.
    std::function<bool(std::string_view bytes)> on_bytes;
};

// What a stream came to: it was open and ended (status 200, no body), or it was refused with this
// answer.
using ApiStreamEnd = ApiResponse;

// The door to one API server: sends what request.h builds, as it stands, once. It adds scheme,
// host, User-Agent and credentials; after a 401 it reads the credentials anew and sends once more
// if they changed. No other retries. Thread-safe; calls block until they are done, `time_limit` is
// over or `stop` is requested.
//
// Errors (no answer): kUnavailable (refused, cut, no such host), kDeadlineExceeded, kForbidden (the
// server's certificate is not trusted), kResourceExhausted (the answer is too long), kCancelled,
// kInvalidArgument (bad endpoint).
class ApiTransport {
public:
    virtual ~ApiTransport() = default;

    virtual Result<ApiResponse> call(
        const ApiRequest& request, Duration time_limit, std::stop_token stop) = 0;

    // Runs until the stream ends. An error says that it was cut or never opened; whether it was
    // open shows in on_open.
    virtual Result<ApiStreamEnd> stream(
        const ApiRequest& request,
        Duration time_limit,
        const ApiStreamSink& sink,
        std::stop_token stop) = 0;
};

}  // namespace stoker::control
