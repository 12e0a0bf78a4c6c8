#include "sidecar/core/holdings.h"

#include <limits>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(Holdings, LimitEachOwnerAndTheTotal) {
    Holdings holdings{10, 6};
    EXPECT_TRUE(holdings.take(1, 6));
    EXPECT_FALSE(holdings.take(1, 1));
    EXPECT_FALSE(holdings.take(2, 5));
    EXPECT_TRUE(holdings.take(2, 4));
    EXPECT_EQ(holdings.total(), 10U);
    EXPECT_FALSE(holdings.take(3, 1));
    EXPECT_TRUE(holdings.take(3, 0));
}

TEST(Holdings, ReturnedAmountMayBeTakenAgain) {
    Holdings holdings{10, 10};
    EXPECT_TRUE(holdings.take(1, 10));
    holdings.give(1, 4);
    EXPECT_TRUE(holdings.take(2, 4));
    holdings.give(1, 100);
    EXPECT_EQ(holdings.total(), 4U) << "nobody gives back more than it holds";
    holdings.give(7, 1);
    EXPECT_EQ(holdings.total(), 4U);
}

TEST(Holdings, RefuseHugeAmountsWithoutOverflow) {
    Holdings holdings{10, 6};
    EXPECT_TRUE(holdings.take(1, 3));
    EXPECT_FALSE(holdings.take(1, std::numeric_limits<std::uint64_t>::max()));
    EXPECT_FALSE(holdings.take(2, std::numeric_limits<std::uint64_t>::max() - 2));
    EXPECT_EQ(holdings.total(), 3U);
}

}  // namespace
}  // namespace stoker::sidecar
