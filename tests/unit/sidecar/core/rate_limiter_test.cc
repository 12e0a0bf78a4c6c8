#include "sidecar/core/rate_limiter.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds{100}};

TEST(RateLimiter, AllowsEverythingWithoutALimit) {
    RateLimiter rate;
    rate.take(gib(1), kStart);
    EXPECT_TRUE(rate.allows(kStart));
    EXPECT_EQ(rate.allows_at(kStart), std::nullopt);
}

TEST(RateLimiter, AllowsTheRateInTheLongRun) {
    RateLimiter rate;
    rate.set(1000, kStart);
    std::uint64_t taken = 0;
    for (TimePoint now = kStart; now < kStart + seconds{10}; now += milliseconds{10}) {
        while (rate.allows(now)) {
            rate.take(Bytes{300}, now);
            taken += 300;
        }
    }
    EXPECT_NEAR(static_cast<double>(taken), 10000, 600);
}

TEST(RateLimiter, DebtDelaysNonUrgentRequests) {
    RateLimiter rate;
    rate.set(1000, kStart);
    rate.take(Bytes{2000}, kStart + seconds{1});  // 1000 were available
    EXPECT_FALSE(rate.allows(kStart + seconds{1}));
    const auto at = rate.allows_at(kStart + seconds{1});
    ASSERT_TRUE(at.has_value());
    EXPECT_GE(*at, kStart + seconds{2});
    EXPECT_LE(*at, kStart + milliseconds{2010});
    EXPECT_TRUE(rate.allows(*at));
}

TEST(RateLimiter, UrgentRequestsMayBeOneSecondAheadOfTheRate) {
    RateLimiter rate;
    rate.set(1000, kStart);
    std::uint64_t taken = 0;
    const auto take_all = [&](TimePoint now) {
        while (rate.allows_urgent(now)) {
            rate.take(Bytes{100}, now);
            taken += 100;
        }
    };
    take_all(kStart);
    EXPECT_EQ(taken, 1000U);
    EXPECT_FALSE(rate.allows(kStart));
    const auto at = rate.allows_urgent_at(kStart);
    ASSERT_TRUE(at.has_value());
    EXPECT_LT(*at, *rate.allows_at(kStart));
    EXPECT_TRUE(rate.allows_urgent(*at));
    for (TimePoint now = kStart; now <= kStart + seconds{10}; now += milliseconds{10}) {
        take_all(now);
    }
    EXPECT_NEAR(static_cast<double>(taken), 11000, 200) << "in the long run the rate holds";
}

TEST(RateLimiter, LoweringTheRateCutsTheDebt) {
    RateLimiter rate;
    rate.set(1'000'000, kStart);
    rate.take(Bytes{2'000'000}, kStart);
    rate.set(1000, kStart);
    EXPECT_TRUE(rate.allows_urgent(kStart + milliseconds{10}));
    EXPECT_TRUE(rate.allows(kStart + milliseconds{1010}));
}

TEST(RateLimiter, SavesUpAtMostOneSecond) {
    RateLimiter rate;
    rate.set(1000, kStart);
    const TimePoint later = kStart + seconds{60};
    rate.take(Bytes{1000}, later);
    EXPECT_FALSE(rate.allows(later));
}

TEST(RateLimiter, RemovingTheLimitForgetsTheDebt) {
    RateLimiter rate;
    rate.set(1000, kStart);
    rate.take(gib(1), kStart);
    rate.set(0, kStart);
    EXPECT_TRUE(rate.allows(kStart));
    rate.set(1000, kStart);
    EXPECT_TRUE(rate.allows(kStart + milliseconds{10}));
}

}  // namespace
}  // namespace stoker::sidecar
