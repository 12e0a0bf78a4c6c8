#include "operator/core/allocation/max_flow.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

TEST(MaxFlow, ReroutesFlowToIncreaseTheTotal) {
    // One unit already flows along 0-1-2-3. Two units fit, but only along 0-1-3 and 0-2-3.
    MaxFlow flow{4};
    flow.add_edge(0, 1, 0, 1);
    flow.add_edge(0, 2, 1);
    const std::size_t middle = flow.add_edge(1, 2, 0, 1);
    flow.add_edge(1, 3, 1);
    flow.add_edge(2, 3, 0, 1);
    EXPECT_EQ(flow.run(), 1U);
    EXPECT_EQ(flow.room(middle), 1U) << "the middle edge carries no flow any more";
}

TEST(MaxFlow, AddsFlowAfterAnEdgeIsWidened) {
    MaxFlow flow{3};
    const std::size_t narrow = flow.add_edge(0, 1, 2);
    flow.add_edge(1, 2, 5);
    EXPECT_EQ(flow.run(), 2U);
    EXPECT_TRUE(flow.reaches_sink(1));
    flow.widen(narrow, 9);
    EXPECT_EQ(flow.run(), 3U);
    EXPECT_EQ(flow.room(narrow), 6U);
    EXPECT_FALSE(flow.reaches_sink(1));
}

// Compares with the smallest cut over all sets of vertices.
TEST(MaxFlow, EqualsTheSmallestCut) {
    Prng prng{test_seed()};
    for (int round = 0; round < 2000; ++round) {
        const std::size_t count = 3 + prng.below(4);
        MaxFlow flow{count};
        std::vector<std::vector<std::uint64_t>> rooms(count, std::vector<std::uint64_t>(count));
        for (std::size_t from = 0; from < count; ++from) {
            for (std::size_t to = 0; to < count; ++to) {
                rooms[from][to] = from != to && prng.below(2) == 0 ? prng.below(9) : 0;
                flow.add_edge(from, to, rooms[from][to]);
            }
        }
        std::uint64_t least = ~std::uint64_t{0};
        for (std::uint64_t set = 0; set < (std::uint64_t{1} << count); ++set) {
            const auto has = [&](std::size_t vertex) { return (set >> vertex & 1U) != 0; };
            std::uint64_t cut = 0;
            for (std::size_t from = 0; from < count; ++from) {
                for (std::size_t to = 0; to < count; ++to) {
                    cut += has(from) && !has(to) ? rooms[from][to] : 0;
                }
            }
            least = has(0) && !has(count - 1) ? std::min(least, cut) : least;
        }
        ASSERT_EQ(flow.run(), least) << "round " << round;
    }
}

}  // namespace
}  // namespace stoker::control
