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
    Duration pause = std::chrono::seconds{1};  // before a GET on a broken connection is repeated
    Duration longest_wait = std::chrono::seconds{30};  // upper limit for Retry-After
};

// The wait before a request is repeated, or nullopt if its outcome is final. A 429 or 5xx with
// Retry-After is repeated for any verb, because the server states that it did nothing. Without a
// response the request may have been executed, so only GET is repeated. `tries_made` includes the
// try that just ended. Pure.
std::optional<Duration> retry_after(
    Verb verb,
    const Result<ApiResponse>& outcome,
    std::uint32_t tries_made,
    const RetryLimits& limits);

}  // namespace stoker::control
