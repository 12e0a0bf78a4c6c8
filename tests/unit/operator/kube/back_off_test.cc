#include "operator/kube/back_off.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours{1}};

TEST(BackOff, DoublesFromTheBaseUpToTheCapWithinItsJitter) {
    BackOff back_off({}, 7);
    TimePoint now = kStart;
    Duration expected = milliseconds{800};
    for (int failure = 0; failure < 10; ++failure) {
        const Duration wait = back_off.next(now);
        EXPECT_GE(wait, expected);
        EXPECT_LE(wait, 2 * expected);
        now += wait;
        expected = std::min<Duration>(2 * expected, seconds{30});
    }
    EXPECT_EQ(expected, seconds{30});
}

TEST(BackOff, ResetsAfterTwoQuietMinutes) {
    BackOff back_off({}, 7);
    for (int failure = 0; failure < 5; ++failure) {
        back_off.next(kStart);
    }
    EXPECT_GE(back_off.next(kStart + minutes{2} - milliseconds{1}), seconds{25});
    EXPECT_LE(back_off.next(kStart + minutes{5}), milliseconds{1600});
}

TEST(BackOff, JitterSpreadsClientsThatFailTogether) {
    BackOff one({}, 1);
    BackOff other({}, 2);
    EXPECT_NE(one.next(kStart), other.next(kStart));
}

}  // namespace
}  // namespace stoker::control
