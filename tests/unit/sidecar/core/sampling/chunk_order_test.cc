#include "sidecar/core/sampling/chunk_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"

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

TEST(ChunkOrder, HasEverySampleOnce) {
    Prng prng{1};
    std::vector<std::uint32_t> chunk_of(1000);
    std::ranges::generate(
        chunk_of, [&prng] { return static_cast<std::uint32_t>(prng.below(30)) * 2; });
    for (const std::uint32_t group : {0U, 1U, 7U, 60U, 1000U}) {
        auto order = chunk_order(chunk_of, 61, group, 5, 0);
        std::ranges::sort(order);
        std::vector<SampleIndex> all(chunk_of.size());
        std::iota(all.begin(), all.end(), 0U);
        EXPECT_EQ(order, all);
    }
    EXPECT_TRUE(chunk_order({}, 0, 4, 5, 0).empty());
}

TEST(ChunkOrder, NeedsOneGroupOfChunksAtATime) {
    const auto chunk_of = chunks_of_37(50);
    const auto order = chunk_order(chunk_of, 50, 5, 9, 2);
    for (std::size_t group = 0; group < 10; ++group) {
        std::set<std::uint32_t> chunks;
        for (std::size_t i = group * 5 * 37; i < (group + 1) * 5 * 37; ++i) {
            chunks.insert(chunk_of[order[i]]);
        }
        EXPECT_EQ(chunks.size(), 5U);
    }
}

TEST(ChunkOrder, DiffersBetweenEpochsAndSeeds) {
    const auto chunk_of = chunks_of_37(10);
    const auto order = chunk_order(chunk_of, 10, 3, 1, 1);
    EXPECT_EQ(order, chunk_order(chunk_of, 10, 3, 1, 1));
    EXPECT_NE(order, chunk_order(chunk_of, 10, 3, 1, 2));
    EXPECT_NE(order, chunk_order(chunk_of, 10, 3, 2, 1));
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
        const auto order = chunk_order(chunk_of, chunks, row.group, 3, 0);
        EXPECT_NEAR(
            distinct_chunks_per_batch(order, chunk_of, chunks, 256), row.distinct, row.tolerance)
            << "group " << row.group;
    }
}

}  // namespace
}  // namespace stoker::sidecar
