#include "sidecar/core/sampling/chunk_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

// Mean number of chunks in the full batches of an order: a measure of its mixing.
double distinct_chunks_per_batch(
    std::span<const SampleIndex> order,
    std::span<const std::uint32_t> chunk_of,
    std::uint32_t chunk_count,
    std::uint32_t batch) {
    std::vector<std::size_t> last_batch(chunk_count, 0);
    const std::size_t batches = order.size() / batch;
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < batches * batch; ++i) {
        std::size_t& seen = last_batch[chunk_of[order[i]]];
        const std::size_t current = i / batch + 1;
        distinct += seen == current ? 0 : 1;
        seen = current;
    }
    return static_cast<double>(distinct) / static_cast<double>(batches);
}

std::vector<std::uint32_t> chunks_of_37(std::uint32_t chunks) {
    std::vector<std::uint32_t> chunk_of(std::size_t{chunks} * 37);
    for (std::size_t sample = 0; sample < chunk_of.size(); ++sample) {
        chunk_of[sample] = static_cast<std::uint32_t>(sample / 37);
    }
    return chunk_of;
}

EpochShape one_rank(std::size_t count, std::uint64_t seed) {
    return {.count = static_cast<std::uint32_t>(count), .seed = seed};
}

TEST(ChunkOrder, HasEverySampleOnce) {
    Prng prng{1};
    std::vector<std::uint32_t> chunk_of(1000);
    std::ranges::generate(
        chunk_of, [&prng] { return static_cast<std::uint32_t>(prng.below(30)) * 2; });
    for (const std::uint32_t group : {0U, 1U, 7U, 60U, 1000U}) {
        auto order = chunk_order(chunk_of, 61, group, one_rank(1000, 5), 0).samples;
        std::ranges::sort(order);
        std::vector<SampleIndex> all(chunk_of.size());
        std::iota(all.begin(), all.end(), 0U);
        EXPECT_EQ(order, all);
    }
    EXPECT_TRUE(chunk_order({}, 0, 4, one_rank(0, 5), 0).samples.empty());
}

TEST(ChunkOrder, ReadsOneGroupOfChunksAfterTheOther) {
    const auto chunk_of = chunks_of_37(50);
    const auto [order, ends] = chunk_order(chunk_of, 50, 5, one_rank(chunk_of.size(), 9), 2);
    EXPECT_EQ(ends.size(), 10U);
    for (std::size_t group = 0; group < 10; ++group) {
        std::set<std::uint32_t> chunks;
        for (std::size_t i = group * 5 * 37; i < (group + 1) * 5 * 37; ++i) {
            chunks.insert(chunk_of[order[i]]);
        }
        EXPECT_EQ(chunks.size(), 5U);
        EXPECT_EQ(ends[group], (group + 1) * 5 * 37);
    }
}

TEST(ChunkOrder, DiffersBetweenEpochsAndSeeds) {
    const auto chunk_of = chunks_of_37(10);
    const auto order_of = [&](std::uint64_t seed, std::uint64_t epoch) {
        return chunk_order(chunk_of, 10, 3, one_rank(chunk_of.size(), seed), epoch).samples;
    };
    EXPECT_EQ(order_of(1, 1), order_of(1, 1));
    EXPECT_NE(order_of(1, 1), order_of(1, 2));
    EXPECT_NE(order_of(1, 1), order_of(2, 1));
}

// Chunks, ranks, groups and sizes are random.
TEST(ChunkOrder, RanksTogetherHaveEverySampleOnce) {
    Prng prng{test::seed()};
    for (int round = 0; round < 200; ++round) {
        const auto count = static_cast<std::uint32_t>(1 + prng.below(300));
        const auto chunks = static_cast<std::uint32_t>(1 + prng.below(40));
        std::vector<std::uint32_t> chunk_of(count);
        std::ranges::generate(
            chunk_of, [&] { return static_cast<std::uint32_t>(prng.below(chunks)); });
        EpochShape shape = one_rank(count, prng());
        shape.ranks = static_cast<std::uint32_t>(1 + prng.below(9));
        shape.tail = prng.below(2) == 0 ? Tail::kPad : Tail::kDrop;
        const auto group = static_cast<std::uint32_t>(prng.below(chunks + 2));
        std::vector<SampleIndex> all;
        for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
            const auto order = chunk_order(chunk_of, chunks, group, shape, 3, rank).samples;
            ASSERT_EQ(order.size(), rank_length(shape));
            for (std::size_t at = 0; at < order.size(); ++at) {
                if (!is_padding(shape, rank, at)) {
                    all.push_back(order[at]);
                }
            }
        }
        std::ranges::sort(all);
        EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "a sample is read twice";
        EXPECT_EQ(all.size(), shape.tail == Tail::kPad ? count : count - count % shape.ranks);
    }
}

TEST(ChunkOrder, RanksShareOnlyChunksAtTheirBorders) {
    const auto chunk_of = chunks_of_37(50);
    EpochShape shape = one_rank(chunk_of.size(), 4);
    shape.ranks = 4;
    shape.tail = Tail::kDrop;
    std::vector<std::set<std::uint32_t>> chunks(4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        for (const SampleIndex sample : chunk_order(chunk_of, 50, 5, shape, 1, rank).samples) {
            chunks[rank].insert(chunk_of[sample]);
        }
        EXPECT_LE(chunks[rank].size(), 14U) << "50 chunks for 4 ranks, and two parts of others";
    }
    std::size_t in_all = 0;
    std::ranges::for_each(chunks, [&](const auto& of_rank) { in_all += of_rank.size(); });
    EXPECT_LE(in_all, 53U);
}

// 37 files of 110 KB per 4 MB chunk, 2,000 chunks, batches of 256.
TEST(ChunkOrder, MixesBetterWithLargerGroups) {
    const std::uint32_t chunks = 2000;
    const auto chunk_of = chunks_of_37(chunks);

    struct Row {
        std::uint32_t group;
        double distinct;
        double tolerance;
    };

    const std::vector<Row> rows = {
        {1, 7.9, 0.1},
        {10, 16.5, 0.5},
        {50, 54, 1},
        {200, 147, 2},
        {500, 202, 2},
        {chunks, 240, 1}};
    for (const Row& row : rows) {
        const auto order =
            chunk_order(chunk_of, chunks, row.group, one_rank(chunk_of.size(), 3), 0).samples;
        EXPECT_NEAR(
            distinct_chunks_per_batch(order, chunk_of, chunks, 256), row.distinct, row.tolerance)
            << "group " << row.group;
    }
}

}  // namespace
}  // namespace stoker::sidecar
