#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/prng.h"

// When to ask the origin again. Pure: time and random numbers are arguments.
namespace stoker::sidecar {

struct RetryPolicy {
    std::uint32_t attempts_max = 8;  // 7 retries: they wait 13 s together, without Retry-After
    Duration backoff_first = std::chrono::milliseconds{100};  // doubles with each attempt
    Duration backoff_max = std::chrono::seconds{20};
    Duration retry_after_max = std::chrono::seconds{60};  // of what a server may ask for
};

// One attempt that did not work.
struct FailedAttempt {
    std::uint32_t attempt = 1;              // its number, from 1
    bool may_pass = false;                  // another attempt may succeed
    std::optional<Duration> retry_after{};  // what the server asked for
};

// How long to wait before the next attempt; nullopt: give up. Exponential with jitter, half to full
// length (so that clients that failed together do not come back together), but never sooner than
// Retry-After.
std::optional<Duration> next_delay(
    const RetryPolicy& policy, const FailedAttempt& failure, Prng& random);

// HTTP statuses that pass by themselves: 408, 429 and 5xx except 501 and 505.
bool is_transient_status(int status);

// The value of a Retry-After header: seconds, or a date (RFC 9110, 10.2.3), which counts from `now`
// and may lie in the past (zero). nullopt: neither.
std::optional<Duration> parse_retry_after(std::string_view value, WallTime now);

}  // namespace stoker::sidecar
