#include "sidecar/core/sampling/bucket_criteria.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(BucketCriteria, CrossEntropyPeaksAtOneOverEAndFallsTowardsBothEnds) {
    EXPECT_EQ(cross_entropy_term(1), 0);
    EXPECT_EQ(cross_entropy_term(0), 0);
    EXPECT_NEAR(cross_entropy_term(0.5), 0.5, 1e-12);
    const double peak = cross_entropy_term(std::exp(-1.0));
    EXPECT_GT(peak, cross_entropy_term(0.30));
    EXPECT_GT(peak, cross_entropy_term(0.45));
    EXPECT_LT(cross_entropy_term(0.001), 0.01);
}

TEST(BucketCriteria, MarginGrowsAsTheClassBecomesLessLikely) {
    EXPECT_EQ(margin_term(1), 0);
    EXPECT_EQ(margin_term(0.5), 1);
    EXPECT_EQ(margin_term(0), 2);
}

TEST(BucketCriteria, FetchTermIsSmallForLargeSamples) {
    EXPECT_EQ(fetch_term(1), 1);
    EXPECT_EQ(fetch_term(4), 0.25);
    EXPECT_TRUE(std::isfinite(fetch_term(0)));
}

// Cross entropy alone calls the hardest sample unimportant; the margin corrects that.
TEST(BucketCriteria, RankTheHardestSampleHighByItsMargin) {
    for (const Bottleneck bottleneck : {Bottleneck::kCompute, Bottleneck::kIo}) {
        BucketCriteria criteria(3, {.bottleneck = bottleneck});
        criteria.record_probability(0, 0.999F);  // easy
        criteria.record_probability(1, 0.4F);    // uncertain
        criteria.record_probability(2, 0.001F);  // hardest
        criteria.rescore();
        EXPECT_GT(criteria.score(1), criteria.score(0));
        if (bottleneck == Bottleneck::kCompute) {
            EXPECT_LT(criteria.score(2), criteria.score(1) / 10);
        } else {
            EXPECT_GT(criteria.score(2), criteria.score(0) + 0.2F);
        }
    }
}

TEST(BucketCriteria, ReadALossAsMinusLogP) {
    BucketCriteria criteria(4, {});
    EXPECT_TRUE(criteria.record(0, 0.0F));
    EXPECT_TRUE(criteria.record(1, std::log(4.0F)));
    EXPECT_TRUE(criteria.record(2, 1e30F));
    EXPECT_NEAR(criteria.p_true(0), 1, 1e-4);
    EXPECT_NEAR(criteria.p_true(1), 0.25, 1e-4);
    EXPECT_NEAR(criteria.p_true(2), 0, 1e-4);
    EXPECT_TRUE(std::isnan(criteria.p_true(3)));
    criteria.rescore();
    EXPECT_TRUE(std::isnan(criteria.score(3)));
    EXPECT_NEAR(criteria.mean_loss(), (0 + std::log(4.0) + 11.8) / 3, 0.05);
}

TEST(BucketCriteria, RejectInvalidMeasurements) {
    BucketCriteria criteria(2, {});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(criteria.record(0, nan));
    EXPECT_FALSE(criteria.record(0, std::numeric_limits<float>::infinity()));
    EXPECT_FALSE(criteria.record(2, 1.0F));
    EXPECT_FALSE(criteria.record_probability(0, nan));
    EXPECT_FALSE(criteria.record_probability(2, 0.5F));
    EXPECT_EQ(criteria.known(), 0U);
}

TEST(BucketCriteria, RankLargeSamplesLowerWhenIoBound) {
    const auto size_of = [](SampleIndex sample) { return Bytes{sample == 1 ? 900U : 100U}; };
    BucketCriteria criteria(3, {.bottleneck = Bottleneck::kIo, .size_of = size_of});
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        criteria.record(sample, 0.7F);
    }
    criteria.rescore();
    EXPECT_LT(criteria.score(1), criteria.score(0));
    EXPECT_EQ(criteria.score(2), criteria.score(0));
    criteria.set_bottleneck(Bottleneck::kCompute);
    criteria.rescore();
    EXPECT_EQ(criteria.score(0), criteria.score(1));
}

TEST(BucketCriteriaDeathTest, RefusesNegativeWeights) {
    EXPECT_DEATH((BucketCriteria{9, {.margin = -1}}), "weights are 0 or more");
}

}  // namespace
}  // namespace stoker::sidecar
