#pragma once

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/token_bucket.h"

namespace stoker::sidecar {

// Limits one sidecar's use of the origin's bandwidth: a token bucket holding one second's worth of
// bytes. Urgent requests may overdraw it by one second's worth; the debt delays the others. So in
// any time t at most (2 + t) seconds' worth and one sample are taken. Pure: no timers inside.
class RateLimiter {
public:
    // Sets the rate; 0: no limit. A debt is cut to one second's worth of the new rate.
    void set(std::uint64_t bytes_per_second, TimePoint now) {
        const auto second = static_cast<double>(bytes_per_second);
        bucket_.set(second, second, now);
        bucket_.cut_debt(second);
    }

    // Whether a request that can wait may proceed now.
    [[nodiscard]] bool allows(TimePoint now) const { return has_above(0, now); }

    // Whether a request that a client waits for may proceed now: true until the debt is one
    // second's worth.
    [[nodiscard]] bool allows_urgent(TimePoint now) const {
        return has_above(-bucket_.rate(), now);
    }

    void take(Bytes bytes, TimePoint now) { bucket_.take(static_cast<double>(bytes.count()), now); }

    // Call if bytes that were charged are not requested after all.
    void give_back(Bytes bytes, TimePoint now) {
        bucket_.take(-static_cast<double>(bytes.count()), now);
    }

    // When allows() becomes true without another event; nullopt if it is true now.
    [[nodiscard]] std::optional<TimePoint> allows_at(TimePoint now) const { return when(0, now); }

    [[nodiscard]] std::optional<TimePoint> allows_urgent_at(TimePoint now) const {
        return when(-bucket_.rate(), now);
    }

private:
    [[nodiscard]] bool has_above(double tokens, TimePoint now) const {
        return bucket_.is_unlimited() || bucket_.tokens(now) > tokens;
    }

    [[nodiscard]] std::optional<TimePoint> when(double tokens, TimePoint now) const {
        return has_above(tokens, now) ? std::nullopt
                                      : std::optional{now + bucket_.wait_for(tokens + 1, now)};
    }

    TokenBucket bucket_{0, 0};  // in bytes
};

}  // namespace stoker::sidecar
