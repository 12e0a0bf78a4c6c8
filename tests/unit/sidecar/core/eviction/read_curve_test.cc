#include "sidecar/core/eviction/read_curve.h"

#include <cmath>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

double mean_of(const ReadCurve& curve) {
    double sum = 0;
    for (int i = 0; i < 10'000; ++i) {
        sum += curve.at((static_cast<float>(i) + 0.5F) / 10'000);
    }
    return sum / 10'000;
}

TEST(ReadCurve, MeanOverAllRanksIsOneHalfForAllParameters) {
    for (const double beta : {0.0, .33, 1.0, 2.0, 16.0}) {
        for (const double full_share : {0.0, .2, 1.0}) {
            EXPECT_NEAR(mean_of({beta, full_share}), .5, .001) << beta << " " << full_share;
        }
    }
}

TEST(ReadCurve, FollowsTheProbabilityOfSelection) {
    Prng prng(test::seed());
    for (int i = 0; i < 1000; ++i) {
        const double beta = 3 * prng.unit() + .3;
        const double importance = .05 + .95 * prng.unit();
        const ReadCurve curve(beta, 0);
        ASSERT_NEAR(
            curve.at(static_cast<float>(importance)),
            (1 + beta) / 2 * std::pow(importance, beta),
            2e-4)
            << beta << " " << importance;
    }
}

TEST(ReadCurve, EqualsTheImportanceByDefault) {
    Prng prng(test::seed());
    for (int i = 0; i < 1000; ++i) {
        const auto importance = static_cast<float>(prng.unit());
        ASSERT_EQ(ReadCurve{}.at(importance), importance);
    }
    EXPECT_EQ(ReadCurve{}.at(1), 1.0F);
}

TEST(ReadCurve, IsFlatIfEveryEpochReadsEverything) {
    for (const float importance : {0.0F, .3F, 1.0F}) {
        EXPECT_FLOAT_EQ(ReadCurve(2, 1).at(importance), .5F);
        EXPECT_FLOAT_EQ(ReadCurve(0, .3).at(importance), .5F);
    }
}

TEST(ReadCurve, FullEpochsMakeJobsMoreAlike) {
    const ReadCurve often(1, .5);
    const ReadCurve never(1, 0);
    EXPECT_GT(often.at(.1F), never.at(.1F));
    EXPECT_LT(often.at(.9F), never.at(.9F));
}

}  // namespace
}  // namespace stoker::sidecar
