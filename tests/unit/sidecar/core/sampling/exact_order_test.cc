#include "sidecar/core/sampling/exact_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(ExactOrder, DealsEverySampleOnceExceptPadding) {
    for (const std::uint32_t ranks : {1U, 2U, 7U}) {
        for (const std::uint32_t count : {1U, 2U, 10U, 1000U}) {
            const EpochShape shape{.count = count, .seed = 1, .ranks = ranks};
            std::vector<SampleIndex> dealt;
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                const auto order = epoch_order(shape, 2, rank);
                EXPECT_EQ(order.size(), rank_length(shape));
                for (std::size_t position = 0; position < order.size(); ++position) {
                    if (!is_padding(shape, rank, position)) {
                        dealt.push_back(order[position]);
                    }
                }
            }
            std::ranges::sort(dealt);
            std::vector<SampleIndex> all(count);
            std::iota(all.begin(), all.end(), 0U);
            EXPECT_EQ(dealt, all);
        }
    }
}

TEST(ExactOrder, DropsTheTailOnRequest) {
    const EpochShape shape{.count = 11, .seed = 4, .ranks = 4, .tail = Tail::kDrop};
    std::set<SampleIndex> dealt;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        const auto order = epoch_order(shape, 0, rank);
        EXPECT_EQ(order.size(), 2U);
        dealt.insert(order.begin(), order.end());
    }
    EXPECT_EQ(dealt.size(), 8U);
}

TEST(ExactOrder, IsIndependentOfTheOrderOfIds) {
    const std::vector<SampleIndex> order = permutation(20'000, 3, 1);
    int rising = 0;
    for (std::size_t i = 1; i < order.size(); ++i) {
        rising += order[i] > order[i - 1] ? 1 : 0;
    }
    EXPECT_NEAR(rising, 10'000, 300);  // uniform permutation: within 41 in two of three cases
}

TEST(ExactOrder, DiffersBetweenSeedsAndEpochs) {
    std::set<std::vector<SampleIndex>> orders;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
            orders.insert(permutation(50, seed, epoch));
        }
    }
    EXPECT_EQ(orders.size(), 25U);
}

}  // namespace
}  // namespace stoker::sidecar
