#include "sidecar/core/time_share.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds{100}};

double milliseconds_of(Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

TEST(TimeShare, AllowsItsShareInTheLongRun) {
    TimeShare share{0.2};
    Duration used{};
    for (TimePoint now = kStart; now < kStart + seconds{10};) {
        if (share.is_spent(now)) {
            now = share.resumes_at(now);
            continue;
        }
        share.spend(milliseconds{1}, now);
        used += milliseconds{1};
        now += milliseconds{1};
    }
    EXPECT_NEAR(milliseconds_of(used), 2000, 50);
}

TEST(TimeShare, SavesNoMoreThanABurst) {
    TimeShare share{0.2};
    const TimePoint later = kStart + seconds{3600};
    share.spend(TimeShare::kBurst, later);
    EXPECT_TRUE(share.is_spent(later));
}

TEST(TimeShare, LongWorkDelaysTheNextWork) {
    TimeShare share{0.2};
    share.spend(milliseconds{120}, kStart);
    EXPECT_TRUE(share.is_spent(kStart));
    const TimePoint resumes = share.resumes_at(kStart);
    EXPECT_NEAR(milliseconds_of(resumes - kStart), 520, 1);
    EXPECT_TRUE(share.is_spent(resumes - milliseconds{30}));
    EXPECT_FALSE(share.is_spent(resumes));
}

TEST(TimeShare, PauseIsShorterThanTheLeaderTimeout) {
    TimeShare share{0.2};
    share.spend(seconds{60}, kStart);
    EXPECT_LT(share.resumes_at(kStart) - kStart, seconds{2});
}

TEST(TimeShare, NewShareAppliesAtOnce) {
    TimeShare share{0.2};
    share.spend(milliseconds{120}, kStart);
    share.set_share(0.1, kStart);
    EXPECT_NEAR(milliseconds_of(share.resumes_at(kStart) - kStart), 1040, 2);
}

}  // namespace
}  // namespace stoker::sidecar
