#include "sidecar/core/sampling/bucket_criteria.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(BucketCriteria, CrossEntropyGrowsAsASampleGetsHarder) {
    EXPECT_EQ(cross_entropy_term(1), 0);
    EXPECT_NEAR(cross_entropy_term(0.5), std::log(2.0), 1e-12);
    EXPECT_NEAR(cross_entropy_term(0), 11.8, 0.05);
    double before = -1;
    for (double p_true = 1; p_true > 0; p_true -= 0.001) {
        EXPECT_GT(cross_entropy_term(p_true), before);
        before = cross_entropy_term(p_true);
    }
}

TEST(BucketCriteria, MarginGrowsAsAnotherClassBecomesMoreLikely) {
    EXPECT_EQ(margin_term(1, 0), 0);
    EXPECT_EQ(margin_term(0.5, 0.5), 1);
    EXPECT_EQ(margin_term(0.5, 0.25), 0.75);
    EXPECT_EQ(margin_term(0, 1), 2);
    EXPECT_EQ(margin_term(0.75, 1), 0.5) << "no more than 1 - p_true is left for others";
}

TEST(BucketCriteria, FetchTermIsOneOverTheLoadTime) {
    EXPECT_EQ(fetch_term(1, 0), 1);
    EXPECT_EQ(fetch_term(4, 0), 0.25);
    EXPECT_EQ(fetch_term(4, 4), 0.125);
    EXPECT_TRUE(std::isfinite(fetch_term(0, 0)));
    EXPECT_EQ(fetch_term(1, std::numeric_limits<double>::infinity()), 0);
}

// With 1,000 classes, an untrained model gives a sample's true class the probability 0.001.
TEST(BucketCriteria, RankUnlearnedSamplesAboveLearntOnes) {
    for (const Bottleneck bottleneck : {Bottleneck::kCompute, Bottleneck::kIo}) {
        BucketCriteria criteria(3, {.bottleneck = bottleneck});
        criteria.record_probability(0, 0.999F);
        criteria.record_probability(1, 0.6F);
        criteria.record_probability(2, 0.001F);
        criteria.rescore();
        EXPECT_GT(criteria.score(1), criteria.score(0) + 0.02F);
        EXPECT_GT(criteria.score(2), criteria.score(1) + 0.05F);
    }
}

TEST(BucketCriteria, RankSamplesOfEqualLossByTheProbabilityOfTheLikeliestWrongClass) {
    BucketCriteria criteria(3, {.bottleneck = Bottleneck::kIo});
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        criteria.record_probability(sample, 0.4F);
    }
    EXPECT_TRUE(criteria.record_other(0, 0.1F));
    EXPECT_TRUE(criteria.record_other(1, 0.5F));
    criteria.rescore();
    EXPECT_LT(criteria.score(0), criteria.score(1));
    EXPECT_GT(criteria.score(2), criteria.score(1)) << "its bound is 0.6";
    EXPECT_NEAR(criteria.p_other(1), 0.5, 1e-4);
    EXPECT_TRUE(std::isnan(criteria.p_other(2)));
    criteria.set_bottleneck(Bottleneck::kCompute);
    criteria.rescore();
    EXPECT_EQ(criteria.score(0), criteria.score(1));
}

TEST(BucketCriteria, ForgetTheOtherProbabilityOfAnEarlierVisit) {
    BucketCriteria criteria(1, {});
    criteria.record_probability(0, 0.4F);
    criteria.record_other(0, 0.1F);
    criteria.record_probability(0, 0.5F);
    EXPECT_FALSE(criteria.knows_other(0));
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
    EXPECT_FALSE(criteria.record_other(0, 0.5F)) << "without a visit";
    criteria.record_probability(0, 0.5F);
    for (const float bad : {nan, -0.1F, 1.1F, 1e30F, -std::numeric_limits<float>::infinity()}) {
        EXPECT_FALSE(criteria.record_other(0, bad));
    }
    EXPECT_FALSE(criteria.record_other(2, 0.5F));
    EXPECT_FALSE(criteria.record_other(UINT32_MAX, 0.5F));
    EXPECT_FALSE(criteria.knows_other(0));
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

// With a latency of many times the transfer, the size hardly changes the load time.
TEST(BucketCriteria, CountSizesLessTheLongerTheLatency) {
    const auto size_of = [](SampleIndex sample) { return Bytes{sample == 1 ? 900U : 100U}; };
    float before = 1;
    for (const double latency_bytes : {0.0, 100.0, 1e5, std::numeric_limits<double>::infinity()}) {
        BucketCriteria criteria(3, {.bottleneck = Bottleneck::kIo, .size_of = size_of});
        criteria.set_latency_bytes(latency_bytes);
        for (SampleIndex sample = 0; sample < 3; ++sample) {
            criteria.record(sample, 0.7F);
        }
        criteria.rescore();
        const float difference = criteria.score(0) - criteria.score(1);
        EXPECT_GE(difference, 0);
        EXPECT_LT(difference, before);
        before = std::max(difference, 1e-9F);
    }
    EXPECT_LT(before, 1e-6F);
}

TEST(BucketCriteriaDeathTest, RefusesNegativeWeights) {
    EXPECT_DEATH((BucketCriteria{9, {.margin = -1}}), "weights must be 0 or more");
}

}  // namespace
}  // namespace stoker::sidecar
