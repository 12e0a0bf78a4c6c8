#pragma once

#include <chrono>

#include "common/base/clock.h"
#include "common/base/token_bucket.h"

namespace stoker::sidecar {

// Limits one user's share of a thread's time: a token bucket of seconds, holding at most kBurst.
// One piece of work may overdraw it by at most kDebtMax, so a user that was stopped resumes within
// kDebtMax / share. So in any time t at most share * t + kBurst and one piece of work is used, if
// no piece takes longer than kDebtMax. Pure: no timers inside.
class TimeShare {
public:
    static constexpr Duration kBurst = std::chrono::milliseconds{20};
    static constexpr Duration kDebtMax = std::chrono::milliseconds{350};

    // Minimum balance to resume: avoids a timer for each frame.
    static constexpr Duration kQuantum = std::chrono::milliseconds{4};

    // `share` must be above 0 and at most 1.
    explicit TimeShare(double share)
        : left_(share, seconds(kBurst)) {}

    void set_share(double share, TimePoint now) { left_.set(share, seconds(kBurst), now); }

    void spend(Duration time, TimePoint now) {
        left_.take(seconds(time), now);
        left_.cut_debt(seconds(kDebtMax));
    }

    [[nodiscard]] bool is_spent(TimePoint now) const { return left_.tokens(now) <= 0; }

    // When a stopped user may resume work; not before `now`.
    [[nodiscard]] TimePoint resumes_at(TimePoint now) const {
        return now + left_.wait_for(seconds(kQuantum), now);
    }

private:
    static double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

    TokenBucket left_;
};

}  // namespace stoker::sidecar
