#pragma once

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/token_bucket.h"

namespace stoker::sidecar {

// What one sidecar may take of the origin's bandwidth: a token bucket of one second's worth of
// bytes. What is waited for may take a second's worth more than there is; the debt delays those who
// can wait. So over any time t no more than (2 + t) seconds' worth and a sample is taken. Pure: no
// timers inside.
class RateLimiter {
public:
    // 0: no limit. A debt is cut to a second's worth of the new rate.
    void set(std::uint64_t bytes_per_second, TimePoint now) {
        const auto second = static_cast<double>(bytes_per_second);
        bucket_.set(second, second, now);
        bucket_.cut_debt(second);
    }

    // May somebody who can wait take something now?
    [[nodiscard]] bool allows(TimePoint now) const { return has_above(0, now); }

    // May somebody take something now who is being waited for? Until the debt is a second's worth.
    [[nodiscard]] bool allows_urgent(TimePoint now) const {
        return has_above(-bucket_.rate(), now);
    }

    void take(Bytes bytes, TimePoint now) { bucket_.take(static_cast<double>(bytes.count()), now); }

    // When allows() becomes true by itself; nullopt while it is.
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

    TokenBucket bucket_{0, 0};  // of bytes
};

}  // namespace stoker::sidecar
