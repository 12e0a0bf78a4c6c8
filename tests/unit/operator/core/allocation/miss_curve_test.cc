#include "operator/core/allocation/miss_curve.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

TEST(MissCurve, IsLinearForExactSampling) {
    const MissCurve curve = MissCurve::exact(Bytes{200});
    EXPECT_DOUBLE_EQ(curve(Bytes{0}), 1);
    EXPECT_DOUBLE_EQ(curve(Bytes{50}), 0.75);
    EXPECT_DOUBLE_EQ(curve(Bytes{200}), 0);
    EXPECT_DOUBLE_EQ(curve(Bytes{900}), 0);
    EXPECT_DOUBLE_EQ(curve.marginal(Bytes{0}), 1.0 / 200);
    EXPECT_DOUBLE_EQ(curve.marginal(Bytes{200}), 0);
}

// With beta 1, an epoch requests half of the dataset. If the most important fifth of the dataset is
// cached, 36 % of the requests hit.
TEST(MissCurve, MatchesTheImportanceSamplingFormula) {
    const MissCurve one = MissCurve::importance(Bytes{1000}, 1);
    EXPECT_NEAR(1 - one(Bytes{200}), 0.36, 1e-12);
    EXPECT_DOUBLE_EQ(one.epoch_volume(), 0.5);
    const MissCurve third = MissCurve::importance(Bytes{1000}, 0.33);
    EXPECT_NEAR(1 - third(Bytes{200}), 0.257, 5e-4);
    EXPECT_NEAR(third.epoch_volume(), 0.752, 5e-4);
    // Misses per epoch with the share w cached: (1-w)^(1+beta)/(1+beta) of the dataset.
    EXPECT_NEAR(one(Bytes{200}) * one.epoch_volume(), 0.8 * 0.8 / 2, 1e-12);
}

// In 11 of 24 epochs the job reads everything, in the other 13 (beta 1) half of the dataset: on
// average 11/24 + 13/48 of it. With a fifth cached, these requests miss by 0.8 and by 0.64.
TEST(MissCurve, WeighsFullAndSelectiveEpochsByRequestedBytes) {
    const MissCurve curve = MissCurve::importance(Bytes{1000}, 1, 11.0 / 24);
    EXPECT_NEAR(curve.epoch_volume(), 35.0 / 48, 1e-12);
    EXPECT_NEAR(curve(Bytes{200}), (22 * .8 + 13 * .64) / 35, 1e-12);
    EXPECT_NEAR(curve(Bytes{200}), .74, .001);
    EXPECT_DOUBLE_EQ(MissCurve::importance(Bytes{1000}, 1, 1)(Bytes{200}), .8);
    for (const double none : {-1.0, std::nan("")}) {
        EXPECT_DOUBLE_EQ(MissCurve::importance(Bytes{1000}, 1, none)(Bytes{200}), .8 * .8);
    }
}

TEST(MissCurve, InterpolatesMeasuredMassesAndStaysConvex) {
    const MissCurve curve = MissCurve::measured(Bytes{400}, {4, 1, 3, 0});
    EXPECT_DOUBLE_EQ(curve(Bytes{0}), 1);
    EXPECT_DOUBLE_EQ(curve(Bytes{100}), 0.5);
    EXPECT_DOUBLE_EQ(curve(Bytes{200}), 0.25);  // 1 and 3 are levelled to 2 and 2
    EXPECT_DOUBLE_EQ(curve(Bytes{250}), 0.125);
    EXPECT_DOUBLE_EQ(curve(Bytes{300}), 0);
}

// An epoch draws as many samples as there are, with replacement. With equal weights it draws each
// sample with probability 1 - 1/e, so that is the share of the dataset that it fetches.
TEST(MissCurve, CountsOneFetchOfARepeatedDraw) {
    const double drawn = 1 - std::exp(-1.0);
    const MissCurve even = MissCurve::measured(Bytes{400}, {1, 1, 1, 1}, true);
    EXPECT_NEAR(even(Bytes{0}), drawn, 1e-12);
    EXPECT_NEAR(even(Bytes{100}), .75 * drawn, 1e-12);
    const MissCurve twice = MissCurve::measured(Bytes{400}, {2, 1, 1, 0}, true);
    EXPECT_NEAR(twice(Bytes{0}), (1 - std::exp(-2.0) + 2 * drawn) / 4, 1e-12);
    EXPECT_NEAR(twice(Bytes{100}), drawn / 2, 1e-12);
    EXPECT_NEAR(MissCurve::measured(Bytes{400}, {}, true)(Bytes{200}), drawn / 2, 1e-12);
}

// The expected shares come from an independent model of contract Replicate with replication 1.
TEST(MissCurve, CountsDistinctDrawsOfReplicate) {
    const MissCurve once = MissCurve::replicate(Bytes{1000}, 1, 10);
    EXPECT_NEAR(once(Bytes{0}), .626, .003);
    EXPECT_NEAR(once(Bytes{100}), .558, .01);
    EXPECT_NEAR(once(Bytes{200}), .488, .005);
    // With replication 3, about a third of the samples, each read three times, serves all draws.
    const MissCurve thrice = MissCurve::replicate(Bytes{1000}, 3, 10);
    EXPECT_EQ(thrice(Bytes{320}), 0);
    EXPECT_LT(thrice(Bytes{200}), once(Bytes{200}));
    EXPECT_DOUBLE_EQ(
        MissCurve::replicate(Bytes{1000}, std::nan(""), 10)(Bytes{200}), once(Bytes{200}));
}

TEST(MissCurve, TreatsAnInvalidSketchAsExactSampling) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    for (const std::vector<float>& masses :
         {std::vector<float>{}, {0, 0}, {nan, -1}, {infinity}, {-3, -infinity}}) {
        EXPECT_DOUBLE_EQ(MissCurve::measured(Bytes{100}, masses)(Bytes{40}), 0.6);
    }
    EXPECT_DOUBLE_EQ(MissCurve::measured(Bytes{100}, {1, nan})(Bytes{50}), 0);
}

TEST(MissCurve, TreatsAnInvalidBetaAsZero) {
    for (const double beta : {-1.0, std::nan(""), -std::numeric_limits<double>::infinity()}) {
        EXPECT_DOUBLE_EQ(MissCurve::importance(Bytes{100}, beta)(Bytes{40}), 0.6);
    }
    EXPECT_GE(MissCurve::importance(Bytes{100}, 1e300)(Bytes{1}), 0);
}

TEST(MissCurve, IsZeroForAnEmptyDataset) {
    for (const MissCurve& curve :
         {MissCurve::exact(Bytes{0}), MissCurve::measured(Bytes{0}, {1, 2})}) {
        EXPECT_DOUBLE_EQ(curve(Bytes{0}), 0);
        EXPECT_DOUBLE_EQ(curve.marginal(Bytes{0}), 0);
        EXPECT_EQ(curve.bytes_for(0.5), Bytes{0});
        EXPECT_TRUE(curve.knots(16, Bytes{1}).empty());
    }
}

std::vector<MissCurve> random_curves(Prng& prng) {
    const Bytes size{1 + prng.below(prng.below(2) == 0 ? 100 : (1ULL << 50U))};
    std::vector<float> masses(1 + prng.below(MissCurve::kSketchSizeMax));
    for (float& mass : masses) {
        mass = static_cast<float>(prng.unit());
    }
    return {
        MissCurve::exact(size),
        MissCurve::importance(size, 3 * prng.unit(), prng.unit()),
        MissCurve::measured(size, masses),
        MissCurve::measured(size, masses, true),
        MissCurve::replicate(size, 1 + 4 * prng.unit(), 2 + 50 * prng.unit())};
}

TEST(MissCurve, NeverRisesAndIsConvex) {
    Prng prng{test_seed()};
    for (int round = 0; round < 300; ++round) {
        for (const MissCurve& curve : random_curves(prng)) {
            const std::uint64_t size = curve.dataset().count();
            Bytes at{};
            double before = curve(at);
            double slope_before = curve.marginal(at);
            for (int i = 1; i <= 64; ++i) {
                at = Bytes{size / 64 * static_cast<std::uint64_t>(i)};
                EXPECT_LE(curve(at), before + 1e-12);
                EXPECT_LE(curve.marginal(at), slope_before * (1 + 1e-9));
                before = curve(at);
                slope_before = curve.marginal(at);
            }
            EXPECT_EQ(curve(curve.dataset()), 0);
        }
    }
}

TEST(MissCurve, FindsTheFewestBytesForAGivenMissShare) {
    Prng prng{test_seed()};
    for (int round = 0; round < 300; ++round) {
        for (const MissCurve& curve : random_curves(prng)) {
            const double mass = prng.unit() * 1.1;
            const Bytes bytes = curve.bytes_for(mass);
            EXPECT_LE(curve(bytes), mass);
            if (bytes > Bytes::zero()) {
                EXPECT_GT(curve(bytes - Bytes{1}), mass);
            }
            EXPECT_EQ(curve.bytes_for(0), curve.dataset());
            EXPECT_EQ(curve.bytes_for(std::nan("")), curve.dataset());
        }
    }
}

TEST(MissCurve, KnotsAreMultiplesOfTheStepAndTheDatasetsSize) {
    EXPECT_EQ(MissCurve::exact(Bytes{100}).knots(4, Bytes{10}), (std::vector<Bytes>{Bytes{100}}));
    EXPECT_EQ(
        MissCurve::importance(Bytes{100}, 1).knots(4, Bytes{10}),
        (std::vector<Bytes>{Bytes{30}, Bytes{60}, Bytes{90}, Bytes{100}}));
    EXPECT_EQ(
        MissCurve::importance(Bytes{3}, 1).knots(16, Bytes{1}),
        (std::vector<Bytes>{Bytes{1}, Bytes{2}, Bytes{3}}));
    EXPECT_EQ(MissCurve::importance(Bytes::unlimited(), 1).knots(4, mib(64)).size(), 4U);
}

}  // namespace
}  // namespace stoker::control
