#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Detects that a count stopped growing, so that a hung listing is reported instead of looking slow.
// Pure; not thread-safe.
class StallDetector {
public:
    explicit StallDetector(Duration patience)
        : patience_(patience) {}

    void begin(TimePoint now) {
        count_ = 0;
        grown_at_ = now;
    }

    // Call periodically. Returns how long the count has not changed, once that exceeds the
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
