#include "operator/core/profile/job_profile.h"

#include <cmath>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

JobProfile make_profile(double ingest_rate, double origin_rate) {
    JobProfile profile;
    profile.method = ProfileMethod::kPredicted;
    profile.ingest_rate = ingest_rate;
    profile.origin_rate = origin_rate;
    return profile;
}

JobValue value(const JobProfile& profile, Bytes dataset, Bytes cached, std::uint32_t gpus = 1) {
    return value_of({profile, dataset, dataset, cached, gpus});
}

constexpr double kMib = 1024.0 * 1024;

TEST(JobValue, MatchesTheFormula) {
    // 100 GiB at 400 MiB/s computing, 100 MiB/s from the origin: 256 s at best, 1024 s without.
    const JobValue half = value(make_profile(400 * kMib, 100 * kMib), gib(100), gib(50), 8);
    EXPECT_DOUBLE_EQ(half.epoch_seconds_best, 256);
    EXPECT_DOUBLE_EQ(half.epoch_seconds_without, 1024);
    EXPECT_DOUBLE_EQ(half.epoch_seconds_with, 512);
    EXPECT_DOUBLE_EQ(half.benefit, 2);
    EXPECT_DOUBLE_EQ(half.seconds_saved_per_epoch, 512);
    EXPECT_DOUBLE_EQ(half.seconds_per_gib, 10.24);
    EXPECT_NEAR(half.marginal_seconds_per_gib, 10.24, 1e-9);
    EXPECT_NEAR(half.gpu_seconds_saved_per_gib_hour, 10.24 * 8 * 3600 / 512, 1e-9);
}

TEST(JobValue, BytesHaveNoValueOnceTheJobNoLongerWaits) {
    const JobProfile profile = make_profile(400 * kMib, 100 * kMib);
    EXPECT_GT(value(profile, gib(100), gib(74)).marginal_seconds_per_gib, 10);
    EXPECT_EQ(value(profile, gib(100), gib(75)).marginal_seconds_per_gib, 0);
    EXPECT_EQ(value(profile, gib(100), gib(100)).epoch_seconds_with, 256);
}

TEST(JobValue, CacheHasNoValueIfTheOriginIsFastEnough) {
    const JobValue none = value(make_profile(100 * kMib, 400 * kMib), gib(100), gib(50));
    EXPECT_DOUBLE_EQ(none.benefit, 1);
    EXPECT_DOUBLE_EQ(none.epoch_seconds_without, none.epoch_seconds_best);
    EXPECT_EQ(none.seconds_saved_per_epoch, 0);
    EXPECT_EQ(none.marginal_seconds_per_gib, 0);
}

TEST(JobValue, UnknownRatesGiveNoValue) {
    EXPECT_EQ(value(make_profile(0, 100), gib(1), gib(1)), JobValue{});
    EXPECT_EQ(value(make_profile(100, 0), gib(1), gib(1)), JobValue{});
    EXPECT_EQ(value(make_profile(100, 100), Bytes{}, gib(1)), JobValue{});
}

TEST(JobValue, MeasuredBenefitReplacesThePredictedOne) {
    JobProfile profile = make_profile(400 * kMib, 100 * kMib);
    profile.method = ProfileMethod::kMeasured;
    profile.measured_benefit = 1.5;
    const JobValue half = value(profile, gib(100), gib(50));
    EXPECT_DOUBLE_EQ(half.benefit, 1.5);
    EXPECT_DOUBLE_EQ(half.epoch_seconds_without, 768);
}

TEST(JobValue, AcceptsEmptyDatasetsAndOversizedCaches) {
    const JobProfile profile = make_profile(400 * kMib, 100 * kMib);
    for (const Bytes everything : {Bytes::zero(), Bytes{1}, gib(10)}) {
        for (const Bytes cached : {Bytes::zero(), gib(50), Bytes::unlimited()}) {
            const JobValue got = value_of({profile, gib(100), everything, cached});
            EXPECT_TRUE(std::isfinite(got.benefit));
            EXPECT_TRUE(std::isfinite(got.marginal_seconds_per_gib));
            EXPECT_GE(got.benefit, 1);
        }
    }
}

TEST(JobValueProperty, MoreCacheNeverMakesAnEpochLonger) {
    Prng prng(test_seed());
    for (int round = 0; round < 2000; ++round) {
        const JobProfile profile = make_profile(1 + prng.unit() * 1e10, 1 + prng.unit() * 1e10);
        const Bytes dataset{1 + prng.below(1ULL << 42U)};
        const Bytes a{prng.below(dataset.count() + 1)};
        const Bytes b{prng.below(dataset.count() + 1)};
        const JobValue less = value(profile, dataset, std::min(a, b));
        const JobValue more = value(profile, dataset, std::max(a, b));
        EXPECT_LE(more.epoch_seconds_with, less.epoch_seconds_with);
        EXPECT_GE(more.benefit, less.benefit);
        const double best = more.epoch_seconds_without / more.epoch_seconds_best;
        EXPECT_LE(more.benefit, best * (1 + 1e-12));
        EXPECT_GE(less.marginal_seconds_per_gib, 0);
    }
}

}  // namespace
}  // namespace stoker::control
