#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/kube/request.h"
#include "operator/kube/transport.h"

namespace stoker::control {

struct RetryLimits {
    std::uint32_t tries = 10;                  // the first one included
    Duration pause = std::chrono::seconds{1};  // before a GET whose connection broke is sent again
    Duration longest_wait = std::chrono::seconds{30};  // of what Retry-After may ask for
};

// How long to wait before a request is sent again, or nullopt when its outcome is final. An answer
// of 429 or 5xx that carries Retry-After is repeated whatever the verb, for the server says that it
// did nothing; when no answer came, the request may have been carried out, so only GET is repeated.
// `tries_made` counts the one that just ended. Pure.
std::optional<Duration> retry_after(
    Verb verb,
    const Result<ApiResponse>& outcome,
    std::uint32_t tries_made,
    const RetryLimits& limits);

}  // namespace stoker::control
