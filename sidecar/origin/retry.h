#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/prng.h"

// When to retry a request to the origin. Pure: time and random numbers are arguments.
namespace stoker::sidecar {

struct RetryPolicy {
    std::uint32_t attempts_max = 8;  // 7 retries; without Retry-After they wait 13 s in all
    Duration backoff_first = std::chrono::milliseconds{100};  // doubles with each attempt
    Duration backoff_max = std::chrono::seconds{20};
    Duration retry_after_max = std::chrono::seconds{60};  // upper limit of a server's Retry-After
};

// One failed attempt.
struct FailedAttempt {
    std::uint32_t attempt = 1;              // its number, from 1
    bool may_pass = false;                  // another attempt may succeed
    std::optional<Duration> retry_after{};  // the server's Retry-After
};

// Delay before the next attempt; nullopt: give up. Exponential with jitter, half to full length (so
// that clients that failed together do not retry together), never less than Retry-After.
std::optional<Duration> next_delay(
    const RetryPolicy& policy, const FailedAttempt& failure, Prng& random);

// Retryable HTTP statuses: 408, 429 and 5xx except 501 and 505.
bool is_transient_status(int status);

// Parses a Retry-After header, seconds or a date (RFC 9110, 10.2.3), into the delay from `now`;
// zero for a past date. nullopt: neither.
std::optional<Duration> parse_retry_after(std::string_view value, WallTime now);

}  // namespace stoker::sidecar
