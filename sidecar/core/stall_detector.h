#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Notices that a count which should grow stands still: a listing that hangs says so instead of
// looking like one that is slow. Pure; not thread-safe.
class StallDetector {
public:
    explicit StallDetector(Duration patience)
        : patience_(patience) {}

    void begin(TimePoint now) {
        count_ = 0;
        grown_at_ = now;
    }

    // Call it now and then. How long the count has stood still, once that is longer than the
    // patience; else zero.
    Duration look(TimePoint now, std::uint64_t count) {
        if (count != count_) {
            count_ = count;
            grown_at_ = now;
        }
        const Duration stalled = now - grown_at_;
        return stalled >= patience_ ? stalled : Duration{};
    }

private:
    Duration patience_;
    std::uint64_t count_ = 0;
    TimePoint grown_at_{};
};

}  // namespace stoker::sidecar
