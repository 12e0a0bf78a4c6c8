#include "sidecar/core/sampling/epoch_permutation.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

TEST(EpochPermutation, HasEverySampleOnceAndInvertsPositions) {
    const std::uint64_t seed = test::seed();
    for (const std::uint32_t count : {1U, 2U, 3U, 5U, 16U, 17U, 1000U, 4096U, 65537U}) {
        SCOPED_TRACE(count);
        const EpochPermutation order(count, seed, count);
        std::vector<bool> seen(count, false);
        for (std::uint32_t position = 0; position < count; ++position) {
            const SampleIndex sample = order.at(position);
            ASSERT_LT(sample, count);
            ASSERT_FALSE(seen[sample]);
            seen[sample] = true;
            ASSERT_EQ(order.position_of(sample), position);
        }
    }
}

TEST(EpochPermutation, DiffersByEpochAndBySeed) {
    const EpochPermutation one(1000, 7, 3);
    const EpochPermutation other_epoch(1000, 7, 4);
    const EpochPermutation other_seed(1000, 8, 3);
    std::uint32_t same_epoch = 0;
    std::uint32_t same_seed = 0;
    for (std::uint32_t position = 0; position < 1000; ++position) {
        same_epoch += one.at(position) == other_epoch.at(position) ? 1 : 0;
        same_seed += one.at(position) == other_seed.at(position) ? 1 : 0;
    }
    EXPECT_LT(same_epoch, 12U);  // the expected number is one
    EXPECT_LT(same_seed, 12U);
}

// Chi-square over (tenth of the samples) x (tenth of the positions), summed over epochs: 81 degrees
// of freedom, so a value above 140 has a probability of 1 in 20,000.
TEST(EpochPermutation, SpreadsSamplesEvenlyOverPositions) {
    constexpr std::uint32_t kCount = 1000;
    constexpr std::uint32_t kEpochs = 400;
    std::vector<double> cells(100, 0);
    for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
        const EpochPermutation order(kCount, 11, epoch);
        for (std::uint32_t position = 0; position < kCount; ++position) {
            ++cells[(order.at(position) / 100) * 10 + position / 100];
        }
    }
    constexpr double kExpected = kCount * kEpochs / 100.0;
    double chi_square = 0;
    for (const double cell : cells) {
        chi_square += (cell - kExpected) * (cell - kExpected) / kExpected;
    }
    EXPECT_LT(chi_square, 140);
}

// Neighbours in one epoch are rarely neighbours in the next: on average one pair of consecutive
// samples per epoch stays together.
TEST(EpochPermutation, SeparatesNeighbours) {
    std::uint32_t neighbours = 0;
    for (std::uint32_t epoch = 0; epoch < 100; ++epoch) {
        const EpochPermutation order(5000, 3, epoch);
        for (std::uint32_t position = 1; position < 5000; ++position) {
            neighbours += order.at(position) == order.at(position - 1) + 1 ? 1 : 0;
        }
    }
    EXPECT_NEAR(neighbours, 100, 50);
}

// Law T1 of `stoker laws`: the hit ratio of LRU on reshuffled epochs, w + (1-w) ln(1-w), measures
// the independence of consecutive orders.
TEST(EpochPermutation, LruHitsMatchIndependentShuffles) {
    constexpr std::uint32_t kCount = 20000;
    constexpr std::uint32_t kKept = kCount / 5;
    const EpochPermutation last(kCount, 1, 4);
    const EpochPermutation now(kCount, 1, 5);
    std::uint32_t hits = 0;
    // A sample is still cached if fewer than kKept others were read since: those after it in the
    // last epoch, and new ones before it in this one.
    std::vector<bool> after(kCount, false);
    for (std::uint32_t position = kCount - kKept; position < kCount; ++position) {
        after[last.at(position)] = true;
    }
    std::vector<std::uint32_t> read_now(kCount + 1, 0);  // by position in the last epoch: a tree
    for (std::uint32_t position = 0; position < kKept; ++position) {
        const SampleIndex sample = now.at(position);
        const std::uint32_t before = last.position_of(sample);
        if (after[sample]) {
            std::uint32_t later_and_read = 0;
            for (std::uint32_t i = before + 1; i < kCount; ++i) {
                later_and_read += read_now[i];
            }
            const std::uint32_t others = (kCount - 1 - before) + position - later_and_read;
            hits += others < kKept ? 1 : 0;
        }
        read_now[before] = 1;
    }
    EXPECT_NEAR(static_cast<double>(hits) / kCount, 0.0215, 0.004);
}

}  // namespace
}  // namespace stoker::sidecar
