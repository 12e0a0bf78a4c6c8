#include "common/base/saturating.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

TEST(Saturating, ArithmeticStopsAtTheLimits) {
    EXPECT_EQ(add_saturated(2, 3), 5);
    EXPECT_EQ(add_saturated(kMax, 1), kMax);
    EXPECT_EQ(add_saturated(kMin, -1), kMin);
    EXPECT_EQ(add_saturated(kMax, kMin), -1);
    EXPECT_EQ(subtract_saturated(2, 3), -1);
    EXPECT_EQ(subtract_saturated(kMax, -1), kMax);
    EXPECT_EQ(subtract_saturated(kMin, 1), kMin);
    EXPECT_EQ(multiply_saturated(-2, 3), -6);
    EXPECT_EQ(multiply_saturated(kMax, 2), kMax);
    EXPECT_EQ(multiply_saturated(kMin, 2), kMin);
    EXPECT_EQ(multiply_saturated(kMin, -1), kMax);
}

TEST(Saturating, SecondsBeyondADurationBecomeTheMaximum) {
    EXPECT_EQ(saturated_seconds(7), std::chrono::seconds{7});
    EXPECT_EQ(saturated_seconds(9'999'999'999), Duration::max());
    EXPECT_EQ(saturated_seconds(kMax), Duration::max());
    EXPECT_EQ(saturated_seconds(kMin), Duration::min());
}

TEST(Saturating, TimeNeverWrapsIntoThePast) {
    const WallTime now{std::chrono::hours{24 * 365 * 56}};
    EXPECT_EQ(time_after(now, std::chrono::seconds{1}), now + std::chrono::seconds{1});
    EXPECT_EQ(time_after(now, saturated_seconds(9'999'999'999)), WallTime::max());
    EXPECT_EQ(elapsed_between(now, now + std::chrono::seconds{4}), std::chrono::seconds{4});
    EXPECT_EQ(elapsed_between(WallTime::max(), WallTime::min()), Duration::min());
    EXPECT_EQ(elapsed_between(WallTime::min(), now), Duration::max());
}

TEST(Saturating, BytesOfStopsAtZeroAndCountOfAtTheMaximum) {
    EXPECT_EQ(bytes_of(5), Bytes{5});
    EXPECT_EQ(bytes_of(-1), Bytes::zero());
    EXPECT_EQ(count_of(Bytes{5}), 5);
    EXPECT_EQ(count_of(Bytes::unlimited()), kMax);
}

}  // namespace
}  // namespace stoker
