#include "sidecar/origin/retry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/http/http_date.h"

namespace stoker::sidecar {

std::optional<Duration> next_delay(
    const RetryPolicy& policy, const FailedAttempt& failure, Prng& random) {
    if (!failure.may_pass || failure.attempt >= policy.attempts_max) {
        return std::nullopt;
    }
    const auto first = static_cast<double>(policy.backoff_first.count());
    const auto limit = static_cast<double>(policy.backoff_max.count());
    const double full = std::min(limit, std::ldexp(first, static_cast<int>(failure.attempt) - 1));
    const Duration backoff{static_cast<Duration::rep>(full * (0.5 + random.unit() / 2))};
    const Duration asked =
        std::min(failure.retry_after.value_or(Duration{}), policy.retry_after_max);
    return std::max(backoff, asked);
}

bool is_transient_status(int status) {
    return status == 408 || status == 429 ||
           (status >= 500 && status <= 599 && status != 501 && status != 505);
}

std::optional<Duration> parse_retry_after(std::string_view value, WallTime now) {
    std::uint32_t seconds = 0;
    const char* end = value.data() + value.size();
    const auto [parsed_to, error] = std::from_chars(value.data(), end, seconds);
    if (error == std::errc{} && parsed_to == end) {
        return std::chrono::seconds{seconds};
    }
    const auto at = http::parse_http_date(value);
    if (!at) {
        return std::nullopt;
    }
    return *at <= now ? Duration::zero() : *at - now;
}

}  // namespace stoker::sidecar
