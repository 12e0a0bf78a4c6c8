#pragma once

#include <algorithm>
#include <limits>

#include "common/base/clock.h"

namespace stoker::control {

// `rate` permits a second, at most `burst` at once; who comes too early is told how long to wait,
// and its permit is already taken. Pure; not thread-safe.
class TokenBucket {
public:
    // A rate of 0 means no limit.
    TokenBucket(double rate, double burst)
        : rate_(rate),
          burst_(burst),
          tokens_(burst) {}

    // Takes one permit; the wait until it counts, zero when there is one left.
    Duration reserve(TimePoint now) {
        if (rate_ <= 0) {
            return Duration::zero();
        }
        refill(now);
        tokens_ -= 1;
        return tokens_ >= 0 ? Duration::zero()
                            : std::chrono::duration_cast<Duration>(
                                  std::chrono::duration<double>(-tokens_ / rate_));
    }

    // Takes a permit if there is one now.
    bool try_take(TimePoint now) {
        refill(now);
        if (rate_ > 0 && tokens_ < 1) {
            return false;
        }
        tokens_ -= 1;
        return true;
    }

private:
    void refill(TimePoint now) {
        if (started_) {
            const double elapsed = std::chrono::duration<double>(now - last_).count();
            tokens_ = std::min(burst_, tokens_ + std::max(elapsed, 0.0) * rate_);
        }
        started_ = true;
        last_ = now;
    }

    double rate_;
    double burst_;
    double tokens_;
    bool started_ = false;
    TimePoint last_{};
};

}  // namespace stoker::control
