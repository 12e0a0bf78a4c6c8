#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/clock.h"

namespace stoker::sidecar {

// A token bucket over bytes: what one sidecar may take of the origin's bandwidth. Holds at most one
// second's worth. What is waited for may take a second's worth more than there is; the debt delays
// those who can wait. So over any time t no more than (2 + t) seconds' worth and a sample is taken.
// Pure: no timers inside.
class RateLimiter {
public:
    // 0: no limit. A debt is cut to a second's worth of the new rate.
    void set(std::uint64_t bytes_per_second, TimePoint now) {
        refill(now);
        bytes_per_second_ = bytes_per_second;
        const auto second = static_cast<double>(bytes_per_second);
        tokens_ = std::clamp(tokens_, -second, second);
    }

    [[nodiscard]] std::uint64_t bytes_per_second() const { return bytes_per_second_; }

    // May somebody who can wait take something now?
    [[nodiscard]] bool allows(TimePoint now) const {
        return bytes_per_second_ == 0 || tokens_at(now) > 0;
    }

    // May somebody take something now who is being waited for? Until the debt is a second's worth.
    [[nodiscard]] bool allows_urgent(TimePoint now) const {
        return bytes_per_second_ == 0 ||
               tokens_at(now) + static_cast<double>(bytes_per_second_) > 0;
    }

    void take(Bytes bytes, TimePoint now) {
        refill(now);
        tokens_ -= static_cast<double>(bytes.count());
    }

    // When allows() becomes true by itself; nullopt while it is.
    [[nodiscard]] std::optional<TimePoint> allows_at(TimePoint now) const {
        return allows(now) ? std::nullopt : std::optional{when(1, now)};
    }

    [[nodiscard]] std::optional<TimePoint> allows_urgent_at(TimePoint now) const {
        if (allows_urgent(now)) {
            return std::nullopt;
        }
        return when(1 - static_cast<double>(bytes_per_second_), now);
    }

private:
    // When there are so many tokens.
    [[nodiscard]] TimePoint when(double tokens, TimePoint now) const {
        const double seconds = (tokens - tokens_at(now)) / static_cast<double>(bytes_per_second_);
        return now + std::chrono::ceil<Duration>(std::chrono::duration<double>(seconds));
    }

    [[nodiscard]] double tokens_at(TimePoint now) const {
        const std::chrono::duration<double> passed = std::max(now - filled_at_, Duration{});
        const auto rate = static_cast<double>(bytes_per_second_);
        return std::min(tokens_ + passed.count() * rate, rate);
    }

    void refill(TimePoint now) {
        tokens_ = bytes_per_second_ == 0 ? 0 : tokens_at(now);
        filled_at_ = now;
    }

    std::uint64_t bytes_per_second_ = 0;
    double tokens_ = 0;
    TimePoint filled_at_{};
};

}  // namespace stoker::sidecar
