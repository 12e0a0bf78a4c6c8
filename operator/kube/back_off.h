#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "common/base/prng.h"

namespace stoker::control {

// Growing waits with jitter, as in client-go's reflector. The wait is `base`, doubled with each
// failure up to `cap`, times a random 1…2; it starts again at `base` after `reset_after` without
// failures. Pure except for its own generator. Not thread-safe.
class BackOff {
public:
    struct Options {
        Duration base = std::chrono::milliseconds{800};
        Duration cap = std::chrono::seconds{30};
        Duration reset_after = std::chrono::minutes{2};
    };

    BackOff(Options options, std::uint64_t seed)
        : options_(options),
          prng_(seed) {}

    // The wait after a failure at `now`.
    Duration next(TimePoint now) {
        const bool is_first = current_ == Duration{} || now - last_ >= options_.reset_after;
        last_ = now;
        current_ = std::min(is_first ? options_.base : 2 * current_, options_.cap);
        return std::chrono::duration_cast<Duration>(current_ * (1.0 + prng_.unit()));
    }

private:
    Options options_;
    Prng prng_;
    Duration current_{};  // zero: nothing has failed yet
    TimePoint last_{};
};

}  // namespace stoker::control
