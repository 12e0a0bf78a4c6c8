#include "sidecar/core/sampling/loss_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};

void rebuild(LossRanks& ranks) {
    ranks.start();
    ASSERT_TRUE(ranks.advance(kToTheEnd));
}

// The middle rank among equal losses, over all samples with a loss.
float plain_rank(const LossRanks& ranks, SampleIndex sample) {
    if (!ranks.knows(sample)) {
        return 1.0F;
    }
    std::uint32_t less = 0;
    std::uint32_t equal = 0;
    for (SampleIndex other = 0; other < ranks.count(); ++other) {
        less += ranks.knows(other) && ranks.loss(other) < ranks.loss(sample) ? 1 : 0;
        equal += ranks.loss(other) == ranks.loss(sample) ? 1 : 0;
    }
    return static_cast<float>((2.0 * less + equal) / (2.0 * ranks.known()));
}

TEST(LossRanks, RanksByLossAtAnyScale) {
    LossRanks ranks(4);
    const float losses[] = {0.5F, 3e9F, 1e-20F, -2.0F};
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        ASSERT_TRUE(ranks.record(sample, losses[sample]));
    }
    rebuild(ranks);
    EXPECT_FLOAT_EQ(ranks.ranks()[3], 0.125F);
    EXPECT_FLOAT_EQ(ranks.ranks()[2], 0.375F);
    EXPECT_FLOAT_EQ(ranks.ranks()[0], 0.625F);
    EXPECT_FLOAT_EQ(ranks.ranks()[1], 0.875F);
    EXPECT_EQ(ranks.revision(), 1U);
}

TEST(LossRanks, RanksUnmeasuredSamplesAsImportant) {
    LossRanks ranks(3);
    EXPECT_EQ(ranks.ranks()[0], 1.0F);
    ranks.record(1, 0.1F);
    rebuild(ranks);
    EXPECT_EQ(ranks.ranks()[0], 1.0F);
    EXPECT_FLOAT_EQ(ranks.ranks()[1], 0.5F);
    EXPECT_FALSE(ranks.knows(2));
    EXPECT_EQ(ranks.known(), 1U);
}

TEST(LossRanks, RejectsInvalidLosses) {
    LossRanks ranks(2);
    EXPECT_FALSE(ranks.record(0, std::numeric_limits<float>::quiet_NaN()));
    EXPECT_FALSE(ranks.record(0, std::numeric_limits<float>::infinity()));
    EXPECT_FALSE(ranks.record(0, -std::numeric_limits<float>::infinity()));
    EXPECT_FALSE(ranks.record(2, 1.0F));
    EXPECT_EQ(ranks.known(), 0U);
}

TEST(LossRanks, TreatsNegativeZeroAsZero) {
    LossRanks ranks(2);
    ranks.record(0, 0.0F);
    ranks.record(1, -0.0F);
    rebuild(ranks);
    EXPECT_EQ(ranks.ranks()[0], ranks.ranks()[1]);
}

// Edge cases of sorting the losses: values that differ only in the upper or only in the lower half
// of their bits, many ties, and a bucket that is sorted by counting.
TEST(LossRanks, AgreesWithCountingOnAllDistributions) {
    Prng luck(test::seed());
    const auto check = [&luck](std::uint32_t count, double known, auto draw) {
        LossRanks ranks(count);
        for (SampleIndex sample = 0; sample < count; ++sample) {
            if (luck.unit() < known) {
                ranks.record(sample, draw());
            }
        }
        rebuild(ranks);
        for (int i = 0; i < 40; ++i) {
            const auto sample = static_cast<SampleIndex>(luck.below(count));
            ASSERT_FLOAT_EQ(ranks.ranks()[sample], plain_rank(ranks, sample));
        }
    };
    check(3000, 1.0, [&luck] { return static_cast<float>(luck.unit() - 0.5); });
    check(3000, 0.4, [&luck] { return static_cast<float>(std::exp(30 * luck.unit())); });
    check(3000, 1.0, [&luck] { return static_cast<float>(luck.below(5)); });
    check(12000, 1.0, [] { return 1.5F; });
    check(12000, 0.9, [&luck] { return 1.0F + static_cast<float>(luck.below(3000)) * 1e-6F; });
}

TEST(LossRanks, DoesNotChangeWithTheScaleOfTheLosses) {
    Prng luck(test::seed());
    LossRanks small(5000);
    LossRanks large(5000);
    for (SampleIndex sample = 0; sample < 5000; ++sample) {
        const auto loss = static_cast<float>(1 + luck.below(1U << 20U));
        small.record(sample, loss);
        large.record(sample, loss * 10.0F);  // exact, since the product has 24 bits
    }
    rebuild(small);
    rebuild(large);
    EXPECT_TRUE(std::equal(small.ranks().begin(), small.ranks().end(), large.ranks().begin()));
}

// advance() works on the ranks for the given number of steps; losses that arrive between two calls
// do not corrupt the ranks.
TEST(LossRanks, RebuildsInSlicesWhileLossesArrive) {
    Prng luck(test::seed());
    LossRanks ranks(20000);
    LossRanks at_once(20000);
    for (SampleIndex sample = 0; sample < 20000; ++sample) {
        const auto loss = static_cast<float>(luck.unit());
        ranks.record(sample, loss);
        at_once.record(sample, loss);
    }
    rebuild(at_once);
    ranks.start();
    std::uint32_t slices = 1;
    while (!ranks.advance(1000)) {
        EXPECT_EQ(ranks.ranks()[19999], 1.0F) << "the last is published last";
        ++slices;
    }
    EXPECT_GE(slices, 3 * 20000 / 1000);
    EXPECT_LE(slices, 4 * 20000 / 1000 + 2 * 65536 / 1000 + 2);
    EXPECT_TRUE(std::equal(ranks.ranks().begin(), ranks.ranks().end(), at_once.ranks().begin()));

    ranks.start();
    while (!ranks.advance(777)) {
        ranks.record(static_cast<SampleIndex>(luck.below(20000)), static_cast<float>(luck.unit()));
    }
    for (const float rank : ranks.ranks()) {
        ASSERT_GE(rank, 0.0F);
        ASSERT_LE(rank, 1.0F);
    }
    EXPECT_EQ(ranks.revision(), 2U);
}

TEST(LossRanks, TakesTwelveBytesPerSample) {
    EXPECT_LE(LossRanks(1000000).memory_bytes(), 12001000U);
}

}  // namespace
}  // namespace stoker::sidecar
