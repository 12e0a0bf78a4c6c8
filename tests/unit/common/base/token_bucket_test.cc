#include "common/base/token_bucket.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds{100}};

TEST(TokenBucket, StartsFull) {
    TokenBucket bucket{10, 2};
    EXPECT_TRUE(bucket.try_take(kStart));
    EXPECT_TRUE(bucket.try_take(kStart));
    EXPECT_FALSE(bucket.try_take(kStart));
}

TEST(TokenBucket, HoldsAtMostTheBurst) {
    const TokenBucket bucket{10, 2};
    EXPECT_EQ(bucket.tokens(kStart + seconds{3600}), 2);
}

TEST(TokenBucket, RefusedTakeCostsNothing) {
    TokenBucket bucket{10, 1};
    bucket.take(1, kStart);
    EXPECT_FALSE(bucket.try_take(kStart + milliseconds{50}));
    EXPECT_TRUE(bucket.try_take(kStart + milliseconds{101}));
}

TEST(TokenBucket, ReservationsQueueBehindEachOther) {
    TokenBucket bucket{10, 1};
    EXPECT_EQ(bucket.reserve(kStart), Duration{});
    EXPECT_EQ(bucket.reserve(kStart), milliseconds{100});
    EXPECT_EQ(bucket.reserve(kStart), milliseconds{200});
}

TEST(TokenBucket, DebtIsPaidFirst) {
    TokenBucket bucket{10, 5};
    bucket.take(15, kStart);
    EXPECT_EQ(bucket.tokens(kStart), -10);
    EXPECT_EQ(bucket.wait_for(0, kStart), seconds{1});
    EXPECT_EQ(bucket.wait_for(5, kStart), milliseconds{1500});
    bucket.cut_debt(1);
    EXPECT_EQ(bucket.wait_for(0, kStart), milliseconds{100});
}

TEST(TokenBucket, RateZeroMeansNoLimit) {
    TokenBucket bucket{0, 1};
    bucket.take(1000, kStart);
    EXPECT_TRUE(bucket.try_take(kStart));
    EXPECT_EQ(bucket.reserve(kStart), Duration{});
}

TEST(TokenBucket, NewRateAppliesFromNowOn) {
    TokenBucket bucket{10, 10};
    bucket.set(1, 2, kStart);
    EXPECT_EQ(bucket.tokens(kStart), 2);
    bucket.take(2, kStart);
    EXPECT_EQ(bucket.wait_for(1, kStart), seconds{1});
}

}  // namespace
}  // namespace stoker
