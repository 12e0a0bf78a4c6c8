#pragma once

#include <algorithm>
#include <chrono>

#include "common/base/clock.h"

namespace stoker::sidecar {

// A token bucket over time: the share of one thread's time that somebody may use. Holds at most
// kBurst. What one piece of work takes beyond it is a debt of at most kDebtMax, so that whoever is
// stopped goes on within kDebtMax / share. So over any time t no more than share * t + kBurst and
// one piece of work is used, where no piece takes longer than kDebtMax. Pure: no timers inside.
class TimeShare {
public:
    static constexpr Duration kBurst = std::chrono::milliseconds{20};
    static constexpr Duration kDebtMax = std::chrono::milliseconds{350};

    // What there has to be before work goes on: not a timer for each frame.
    static constexpr Duration kQuantum = std::chrono::milliseconds{4};

    // `share` above 0 and at most 1.
    TimeShare(double share, TimePoint now)
        : share_(share),
          left_(kBurst),
          filled_at_(now) {}

    void set_share(double share, TimePoint now) {
        refill(now);
        share_ = share;
    }

    void spend(Duration time, TimePoint now) {
        refill(now);
        left_ = std::max(left_ - time, -kDebtMax);
    }

    [[nodiscard]] bool is_spent(TimePoint now) const { return left_at(now) <= Duration{}; }

    // When work that was stopped goes on; not before `now`.
    [[nodiscard]] TimePoint resumes_at(TimePoint now) const {
        const std::chrono::duration<double> missing = kQuantum - left_at(now);
        return now + std::max(
                         Duration{},
                         std::chrono::ceil<Duration>(
                             std::chrono::duration<double>(missing.count() / share_)));
    }

private:
    [[nodiscard]] Duration left_at(TimePoint now) const {
        const std::chrono::duration<double> passed = std::max(now - filled_at_, Duration{});
        const auto gained = std::chrono::floor<Duration>(passed * share_);
        return std::min(left_ + gained, kBurst);
    }

    void refill(TimePoint now) {
        left_ = left_at(now);
        filled_at_ = std::max(filled_at_, now);
    }

    double share_;
    Duration left_;
    TimePoint filled_at_;
};

}  // namespace stoker::sidecar
