#include "sidecar/core/eviction/rank_sketch.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 32 * 64;  // 64 parts

// Sample i of n is worth i/n and has 10 bytes.
RankOrder rising(std::uint32_t count) {
    std::vector<RankOrder::Entry> entries;
    for (std::uint32_t sample = 0; sample < count; ++sample) {
        entries.push_back({static_cast<float>(sample) / static_cast<float>(count), Bytes{10}});
    }
    return RankOrder{std::move(entries)};
}

double sum(const std::vector<float>& masses, std::size_t from, std::size_t to) {
    return std::accumulate(
        masses.begin() + static_cast<std::ptrdiff_t>(from),
        masses.begin() + static_cast<std::ptrdiff_t>(to),
        0.0);
}

TEST(RankOrder, PutsTheMostValuableFirst) {
    const RankOrder order = rising(100);
    EXPECT_DOUBLE_EQ(order.span_of(0.99F).begin, 0);
    EXPECT_DOUBLE_EQ(order.span_of(0.99F).end, 0.01);
    EXPECT_DOUBLE_EQ(order.span_of(0).begin, 0.99);
    EXPECT_DOUBLE_EQ(order.span_of(0).end, 1);
}

TEST(RankOrder, EqualValuesShareASpanAndAbsentValuesGetThatOfTheNextLowerValue) {
    const RankOrder order{{{1, Bytes{10}}, {0.5F, Bytes{10}}, {0.5F, Bytes{10}}, {0, Bytes{10}}}};
    EXPECT_DOUBLE_EQ(order.span_of(0.5F).begin, 0.25);
    EXPECT_DOUBLE_EQ(order.span_of(0.5F).end, 0.75);
    EXPECT_DOUBLE_EQ(order.span_of(0.75F).begin, 0.25);
    EXPECT_DOUBLE_EQ(order.span_of(7).begin, 0);
    EXPECT_DOUBLE_EQ(order.span_of(-1).end, 1);
}

TEST(RankOrder, RanksByBytesNotBySamples) {
    const RankOrder order{{{1, Bytes{30}}, {0.5F, Bytes{10}}}};
    EXPECT_DOUBLE_EQ(order.span_of(1).end, 0.75);
    EXPECT_DOUBLE_EQ(order.span_of(0.5F).begin, 0.75);
}

TEST(RankOrder, WithoutSamplesEachValueSpansAllRanks) {
    EXPECT_DOUBLE_EQ(RankOrder{}.span_of(0.5F).begin, 0);
    EXPECT_DOUBLE_EQ(RankOrder{}.span_of(0.5F).end, 1);
}

TEST(RankSketch, IsEmptyBeforeTheFirstEpochEnds) {
    RankSketch sketch{kCount};
    sketch.close_epoch();
    EXPECT_EQ(sketch.revision(), 0U);
    EXPECT_EQ(sketch.epoch_bytes(), Bytes{0});
    sketch.count({0, 1}, Bytes{10});
    EXPECT_EQ(sketch.revision(), 0U);
    sketch.close_epoch();
    EXPECT_EQ(sketch.revision(), 1U);
    EXPECT_EQ(sketch.epoch_bytes(), Bytes{10});
}

TEST(RankSketch, AllMassesAreEqualForAJobThatReadsEverything) {
    const RankOrder order = rising(kCount);
    RankSketch sketch{kCount};
    for (std::uint32_t sample = 0; sample < kCount; ++sample) {
        sketch.count(order.span_of(static_cast<float>(sample) / kCount), Bytes{10});
    }
    sketch.close_epoch();
    ASSERT_EQ(sketch.masses().size(), 64U);
    for (const float mass : sketch.masses()) {
        EXPECT_FLOAT_EQ(mass, 1.0F / 64);
    }
    EXPECT_EQ(sketch.epoch_bytes(), Bytes{10 * kCount});
}

TEST(RankSketch, SpreadsEqualValuesEvenlyOverTheirSpan) {
    RankSketch sketch{kCount};
    sketch.count({0.25, 0.75}, Bytes{320});
    sketch.close_epoch();
    const std::vector<float> masses = sketch.masses();
    EXPECT_EQ(sum(masses, 0, 16), 0);
    EXPECT_FLOAT_EQ(masses[16], 1.0F / 32);
    EXPECT_FLOAT_EQ(masses[47], 1.0F / 32);
    EXPECT_EQ(sum(masses, 48, 64), 0);
}

// A sample of importance rank q (0 to 1, 1: most important) is read with probability q^beta. So the
// most important share w of the samples gets 1 - (1-w)^(1+beta) of all reads (law T3 of `stoker
// laws`; iCACHE, HPCA 2023).
TEST(RankSketch, EqualsTheMissCurveOfImportanceSampling) {
    Prng prng{test::seed()};
    constexpr std::uint32_t kMany = 100000;
    const RankOrder order = rising(kMany);
    for (const double beta : {0.33, 1.0}) {
        RankSketch sketch{kMany};
        for (int epoch = 0; epoch < 3; ++epoch) {
            for (std::uint32_t sample = 0; sample < kMany; ++sample) {
                const float rank = static_cast<float>(sample) / kMany;
                if (prng.unit() < std::pow(rank, beta)) {
                    sketch.count(order.span_of(rank), Bytes{10});
                }
            }
            sketch.close_epoch();
        }
        const std::vector<float> masses = sketch.masses();
        ASSERT_EQ(masses.size(), RankSketch::kPartsMax);
        for (const double w : {0.1, 0.2, 0.5}) {
            const auto kept = static_cast<std::size_t>(w * RankSketch::kPartsMax);
            const double law = 1 - std::pow(1 - w, 1 + beta);
            EXPECT_NEAR(sum(masses, 0, kept), law, 0.005) << "beta " << beta;
        }
        const double volume = static_cast<double>(sketch.epoch_bytes().count()) / (10.0 * kMany);
        EXPECT_NEAR(volume, 1 / (1 + beta), 0.01) << "beta " << beta;
    }
}

TEST(RankSketch, OlderEpochsWeighLess) {
    RankSketch sketch{kCount};
    sketch.count({0, 0.5}, Bytes{1000});
    sketch.close_epoch();
    for (int epoch = 0; epoch < 20; ++epoch) {
        sketch.count({0.5, 1}, Bytes{1000});
        sketch.close_epoch();
    }
    EXPECT_LT(sum(sketch.masses(), 0, 32), 0.01);
    EXPECT_NEAR(static_cast<double>(sketch.epoch_bytes().count()), 1000, 1);
}

}  // namespace
}  // namespace stoker::sidecar
