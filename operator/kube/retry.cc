#include "operator/kube/retry.h"

#include <algorithm>

#include "operator/kube/status_error.h"

namespace stoker::control {

std::optional<Duration> retry_after(
    Verb verb,
    const Result<ApiResponse>& outcome,
    std::uint32_t tries_made,
    const RetryLimits& limits) {
    if (tries_made >= limits.tries) {
        return std::nullopt;
    }
    if (!outcome) {
        const bool broken = outcome.error().code == ErrorCode::kUnavailable;
        return broken && verb == Verb::kGet ? std::optional(limits.pause) : std::nullopt;
    }
    if ((outcome->status != 429 && outcome->status < 500) || outcome->retry_after.empty()) {
        return std::nullopt;
    }
    const auto failure = read_failure(outcome->status, {}, outcome->retry_after);
    if (!failure.retry_after) {
        return std::nullopt;
    }
    return std::min(*failure.retry_after, limits.longest_wait);
}

}  // namespace stoker::control
