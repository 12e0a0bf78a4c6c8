#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "common/base/prng.h"

namespace stoker::control {

// Growing waits with jitter, as client-go's reflector has them. The wait is base·factor^n, at most
// `cap`, times a random 1…1+jitter; it starts anew when nothing failed for `reset_after`. Pure but
// for its own generator. Not thread-safe.
class BackOff {
public:
    struct Options {
        Duration base = std::chrono::milliseconds{800};
        double factor = 2.0;
        Duration cap = std::chrono::seconds{30};
        double jitter = 1.0;
        Duration reset_after = std::chrono::minutes{2};
    };

    BackOff(Options options, std::uint64_t seed)
        : options_(options),
          prng_(seed) {}

    // How long to wait after a failure at `now`.
    Duration next(TimePoint now) {
        if (failed_before_ && now - last_ >= options_.reset_after) {
            current_ = Duration::zero();
        }
        last_ = now;
        failed_before_ = true;
        const Duration grown = scaled(current_, options_.factor);
        current_ = std::min(current_ == Duration::zero() ? options_.base : grown, options_.cap);
        return scaled(current_, 1.0 + prng_.unit() * options_.jitter);
    }

    void reset() { current_ = Duration::zero(); }

private:
    static Duration scaled(Duration duration, double factor) {
        return std::chrono::duration_cast<Duration>(duration * factor);
    }

    Options options_;
    Prng prng_;
    Duration current_{};
    TimePoint last_{};
    bool failed_before_ = false;
};

}  // namespace stoker::control
