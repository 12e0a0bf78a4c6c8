#include "common/base/prng.h"

#include <array>

#include <gtest/gtest.h>

namespace stoker {
namespace {

// The reference stream of SplitMix64 for seed 1234567 (from the algorithm's published test
// program).
TEST(Prng, MatchesTheReferenceStream) {
    Prng prng{1234567};
    EXPECT_EQ(prng(), 6457827717110365317ULL);
    EXPECT_EQ(prng(), 3203168211198807973ULL);
    EXPECT_EQ(prng(), 9817491932198370423ULL);
}

TEST(Prng, BelowReachesEveryValueUnderItsBound) {
    Prng prng{1};
    std::array<int, 7> seen{};
    for (int i = 0; i < 7000; ++i) {
        ++seen.at(prng.below(7));
    }
    for (const int count : seen) {
        EXPECT_GT(count, 800);
    }
}

TEST(Prng, UnitIsInHalfOpenInterval) {
    Prng prng{2};
    double sum = 0;
    for (int i = 0; i < 10000; ++i) {
        const double value = prng.unit();
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        sum += value;
    }
    EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Prng, AfterEqualsDrawingThatManyWords) {
    Prng walked{42};
    for (int i = 0; i < 1000; ++i) {
        walked();
    }
    EXPECT_EQ(Prng{42}.after(1000)(), walked());
    EXPECT_EQ(Prng{42}.after(0)(), Prng{42}());
}

}  // namespace
}  // namespace stoker
