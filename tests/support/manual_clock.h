#pragma once

#include <atomic>

#include "common/base/clock.h"

namespace stoker::testing {

// A clock that only tests advance, wall and steady time together. Thread-safe.
class ManualClock final : public Clock {
public:
    // Starts at 2026-01-31T12:00:00Z, one hour after boot.
    static constexpr WallTime kWallStart{std::chrono::seconds{1769860800}};
    static constexpr TimePoint kStart{std::chrono::hours{1}};

    [[nodiscard]] TimePoint now() const override { return kStart + Duration{passed_.load()}; }

    [[nodiscard]] WallTime wall_now() const override {
        return kWallStart + Duration{passed_.load()};
    }

    void advance(Duration by) { passed_ += by.count(); }

private:
    std::atomic<Duration::rep> passed_{0};
};

}  // namespace stoker::testing
