#include "sidecar/core/sampling/loss_history.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

// The percentile that the next loss would get.
double percentile(LossHistory ring, float loss, double luck) {
    return ring.rate_and_add(loss, luck);
}

TEST(LossHistory, PercentileIsTheShareOfSmallerLosses) {
    LossHistory ring(4);
    for (const float loss : {3.0F, 1.0F, 2.0F, 4.0F}) {
        ring.add(loss);
    }
    EXPECT_DOUBLE_EQ(percentile(ring, 0.5F, 0), 0.0);
    EXPECT_DOUBLE_EQ(percentile(ring, 2.5F, 0), 0.4);
    EXPECT_DOUBLE_EQ(percentile(ring, 9.0F, 0), 0.8);
    EXPECT_DOUBLE_EQ(percentile(ring, 9.0F, 0.5), 0.9);
}

// iCACHE's published code rates the highest 1 % of the losses 0, so it never reads their samples.
TEST(LossHistory, HardestSampleHasTheHighestPercentile) {
    LossHistory ring(1024);
    for (int i = 0; i < 1024; ++i) {
        ring.add(static_cast<float>(i));
    }
    EXPECT_GT(percentile(ring, 1023.0F, 0), 0.997);
    EXPECT_GT(percentile(ring, 1e30F, 0), 0.999);
}

TEST(LossHistory, ForgetsTheOldestLoss) {
    LossHistory ring(2);
    ring.add(10.0F);
    ring.add(20.0F);
    ring.add(30.0F);
    EXPECT_EQ(ring.size(), 2U);
    EXPECT_DOUBLE_EQ(percentile(ring, 15.0F, 0), 0.0);
    ring.add(5.0F);
    EXPECT_DOUBLE_EQ(percentile(ring, 15.0F, 0), 1.0 / 3);
}

TEST(LossHistory, BreaksTiesAtRandom) {
    LossHistory ring(3);
    for (int i = 0; i < 3; ++i) {
        ring.add(1.0F);
    }
    EXPECT_DOUBLE_EQ(percentile(ring, 1.0F, 0), 0.0);
    EXPECT_DOUBLE_EQ(percentile(ring, 1.0F, 0.5), 0.5);
}

TEST(LossHistory, AgreesWithAPlainListOnRandomLosses) {
    Prng luck(test::seed());
    for (const std::uint32_t capacity : {1U, 2U, 7U, 64U}) {
        LossHistory ring(capacity);
        std::deque<float> plain;
        for (int i = 0; i < 1000; ++i) {
            // Few distinct values, some negative, to produce ties.
            const float loss = static_cast<float>(luck.below(12)) - 4.0F;
            const auto less = std::count_if(
                plain.begin(), plain.end(), [loss](float other) { return other < loss; });
            const auto equal = std::count(plain.begin(), plain.end(), loss);
            const double want =
                (static_cast<double>(less) + 0.25 * static_cast<double>(equal + 1)) /
                static_cast<double>(plain.size() + 1);
            ASSERT_DOUBLE_EQ(ring.rate_and_add(loss, 0.25), want);
            plain.push_back(loss);
            if (plain.size() > capacity) {
                plain.pop_front();
            }
        }
    }
}

// rate_and_add() breaks ties at random, so the percentile of a new loss of the same distribution is
// uniform even if all losses are equal: percentile^beta selects 1/(1+beta) of the samples.
TEST(LossHistory, SelectedShareIsIndependentOfTheLossDistribution) {
    Prng luck(test::seed());
    const auto kept_share = [&luck](auto draw, double beta) {
        LossHistory ring(256);
        double kept = 0;
        constexpr int kSamples = 40000;
        for (int i = 0; i < 256 + kSamples; ++i) {
            const float loss = draw();
            const double rated = ring.rate_and_add(loss, luck.unit());
            if (i >= 256) {
                kept += luck.unit() < std::pow(rated, beta) ? 1 : 0;
            }
        }
        return kept / kSamples;
    };
    const auto uniform = [&luck] { return static_cast<float>(luck.unit()); };
    const auto skewed = [&luck] { return static_cast<float>(std::exp(9 * luck.unit())); };
    const auto mostly_zero = [&luck] { return luck.unit() < 0.8 ? 0.0F : 1.0F; };
    const auto constant = [] { return 0.25F; };
    for (const double beta : {0.33, 1.0}) {
        EXPECT_NEAR(kept_share(uniform, beta), 1 / (1 + beta), 0.012);
        EXPECT_NEAR(kept_share(skewed, beta), 1 / (1 + beta), 0.012);
        EXPECT_NEAR(kept_share(mostly_zero, beta), 1 / (1 + beta), 0.012);
        EXPECT_NEAR(kept_share(constant, beta), 1 / (1 + beta), 0.012);
    }
}

}  // namespace
}  // namespace stoker::sidecar
