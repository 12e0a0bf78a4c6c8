#pragma once

#include <chrono>

#include "common/base/clock.h"
#include "common/base/token_bucket.h"

namespace stoker::sidecar {

// The share of one thread's time that somebody may use: a token bucket of seconds. Holds at most
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
    explicit TimeShare(double share)
        : left_(share, seconds(kBurst)) {}

    void set_share(double share, TimePoint now) { left_.set(share, seconds(kBurst), now); }

    void spend(Duration time, TimePoint now) {
        left_.take(seconds(time), now);
        left_.cut_debt(seconds(kDebtMax));
    }

    [[nodiscard]] bool is_spent(TimePoint now) const { return left_.tokens(now) <= 0; }

    // When work that was stopped goes on; not before `now`.
    [[nodiscard]] TimePoint resumes_at(TimePoint now) const {
        return now + left_.wait_for(seconds(kQuantum), now);
    }

private:
    static double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

    TokenBucket left_;
};

}  // namespace stoker::sidecar
