#pragma once

#include <algorithm>
#include <chrono>

#include "common/base/clock.h"

namespace stoker {

// A token bucket: tokens arrive at `rate` per second, up to `burst`. Taking more tokens than there
// are leaves a debt. A rate of 0 means no limit. Pure: no timers inside. Not thread-safe.
class TokenBucket {
public:
    // Starts with a full burst.
    TokenBucket(double rate, double burst)
        : rate_(rate),
          burst_(burst),
          tokens_(burst) {}

    [[nodiscard]] double rate() const { return rate_; }

    [[nodiscard]] bool is_unlimited() const { return rate_ <= 0; }

    // Available tokens; negative: debt.
    [[nodiscard]] double tokens(TimePoint now) const {
        const std::chrono::duration<double> passed = std::max(now - filled_at_, Duration{});
        return is_unlimited() ? burst_ : std::min(tokens_ + passed.count() * rate_, burst_);
    }

    // Time until `count` tokens (at most the burst) are available; zero: now.
    [[nodiscard]] Duration wait_for(double count, TimePoint now) const {
        const double missing = is_unlimited() ? 0 : std::max(count - tokens(now), 0.0);
        return missing == 0
                   ? Duration{}
                   : std::chrono::ceil<Duration>(std::chrono::duration<double>(missing / rate_));
    }

    void take(double count, TimePoint now) {
        tokens_ = tokens(now) - count;
        filled_at_ = std::max(filled_at_, now);
    }

    // Takes one token, on credit if none is left; returns the wait until the token is due.
    Duration reserve(TimePoint now) {
        take(1, now);
        return wait_for(0, now);
    }

    // Takes one token if one is available.
    bool try_take(TimePoint now) {
        const bool may = is_unlimited() || tokens(now) >= 1;
        if (may) {
            take(1, now);
        }
        return may;
    }

    // Changes rate and burst. Tokens and debt are cut to the new limits.
    void set(double rate, double burst, TimePoint now) {
        take(0, now);
        rate_ = rate;
        burst_ = burst;
        tokens_ = std::min(tokens_, burst);
    }

    // Limits the debt to `tokens_max`.
    void cut_debt(double tokens_max) { tokens_ = std::max(tokens_, -tokens_max); }

private:
    double rate_;
    double burst_;
    double tokens_;
    TimePoint filled_at_{};
};

}  // namespace stoker
