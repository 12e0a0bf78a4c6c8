#include "sidecar/core/sampling/clairvoyant_accesses.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(AccessCounts, MatchTheEpochOrders) {
    const EpochShape shape{.count = 100, .seed = 3, .ranks = 3};
    const AccessCounts counts{shape, 5};
    const auto first = first_uses(shape, 5)[1];
    std::vector<std::uint32_t> expected(100);
    std::vector<std::uint64_t> expected_first(100, kNeverRead);
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
        const auto order = epoch_order(shape, epoch, 1);
        for (std::size_t position = 0; position < order.size(); ++position) {
            ++expected[order[position]];
            expected_first[order[position]] =
                std::min(expected_first[order[position]], epoch * order.size() + position);
        }
    }
    for (SampleIndex sample = 0; sample < 100; ++sample) {
        EXPECT_EQ(counts.at(1, sample), expected[sample]);
        EXPECT_EQ(first[sample], expected_first[sample]);
    }
}

// The example of the NoPFS paper: number of samples of ImageNet-1k that one of 16 workers reads
// more than 10 times in 90 epochs.
TEST(Clairvoyance, PredictsThePapersNumberOfFrequentSamples) {
    EXPECT_NEAR(expected_above(1'281'167, 90, 16, 10), 31'635, 1);
}

struct Row {
    std::uint32_t ranks;
    double shares[4];  // after 3, 10, 30 and 90 epochs
};

// Law T6 of `stoker laws`: share of a rank's reads that its own cache serves if it keeps the
// samples that the rank reads most often.
TEST(Clairvoyance, ExpectedLocalShareEqualsThatOfLawT6) {
    const std::vector<Row> rows = {
        {2, {.75, .62, .57, .54}},
        {4, {.56, .43, .35, .31}},
        {8, {.45, .32, .23, .19}},
        {16, {.40, .24, .16, .12}}};
    constexpr std::uint64_t kEpochs[] = {3, 10, 30, 90};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < 4; ++i) {
            SCOPED_TRACE(testing::Message() << row.ranks << " ranks, " << kEpochs[i] << " epochs");
            EXPECT_NEAR(
                expected_local_share(kEpochs[i], row.ranks, 1.0 / row.ranks), row.shares[i], 0.006);
        }
    }
}

TEST(Clairvoyance, PlacementByTheEpochOrdersServesTheExpectedShareLocally) {
    constexpr std::uint32_t kSamples = 20'000;
    const std::vector<Bytes> sizes(kSamples, Bytes{1});
    for (const std::uint32_t ranks : {2U, 8U}) {
        const EpochShape shape{.count = kSamples, .seed = 11, .ranks = ranks};
        const AccessCounts counts{shape, 10};
        const auto first = first_uses(shape, 10)[0];
        const std::vector<Bytes> capacity{
            Bytes{kSamples / ranks / 4}, Bytes{kSamples / ranks * 3 / 4}};
        const auto placement = place_own(counts, 0, first, sizes, capacity);
        double local = 0;
        std::uint16_t least_in_fast = UINT16_MAX;
        std::uint16_t most_in_slow = 0;
        for (std::size_t tier = 0; tier < 2; ++tier) {
            EXPECT_EQ(placement.tiers[tier].size(), capacity[tier].count());
            EXPECT_TRUE(std::ranges::is_sorted(
                placement.tiers[tier], {}, [&](SampleIndex sample) { return first[sample]; }));
            for (const SampleIndex sample : placement.tiers[tier]) {
                const auto count = counts.at(0, sample);
                local += count;
                (tier == 0 ? least_in_fast : most_in_slow) =
                    tier == 0 ? std::min(least_in_fast, count) : std::max(most_in_slow, count);
            }
        }
        EXPECT_GE(least_in_fast, most_in_slow);
        const double reads = 10.0 * rank_length(shape);
        EXPECT_NEAR(local / reads, expected_local_share(10, ranks, 1.0 / ranks), 0.01);
    }
}

// The ranks' caches together hold the dataset. Only a sample's owner reads it from the origin,
// once.
TEST(Clairvoyance, ReadsEachSampleOnceIfThePoolHoldsTheDataset) {
    constexpr std::uint32_t kSamples = 5'000;
    const EpochShape shape{.count = kSamples, .seed = 2, .ranks = 4};
    const AccessCounts counts{shape, 6};
    const auto owners = place_pooled(counts, kSamples / 4);
    std::vector<std::uint32_t> reads(kSamples);
    std::vector<std::set<SampleIndex>> cached(4);
    double local = 0;
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            for (const SampleIndex sample : epoch_order(shape, epoch, rank)) {
                const std::uint32_t owner = owners[sample];
                ASSERT_NE(owner, kNoOwner);
                local += owner == rank ? 1 : 0;
                // At the first request for the sample, its owner fetches and keeps it.
                reads[sample] += cached[owner].insert(sample).second ? 1 : 0;
            }
        }
    }
    for (const auto& one : cached) {
        EXPECT_LE(one.size(), kSamples / 4U);
    }
    EXPECT_TRUE(std::ranges::all_of(reads, [](std::uint32_t times) { return times == 1; }));
    EXPECT_GT(local / (6.0 * kSamples), 0.4) << "a random owner would be the reader in .25";
}

TEST(Clairvoyance, SamplesWithoutRoomHaveNoOwner) {
    const AccessCounts counts{{.count = 100, .seed = 2, .ranks = 4}, 2};
    const auto owners = place_pooled(counts, 10);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(std::ranges::count(owners, rank), 10);
    }
    EXPECT_EQ(std::ranges::count(owners, kNoOwner), 60);
}

TEST(OwnersByReads, IsTheBestReaderIfEachNodeReadsItsOwnSamples) {
    // One epoch: every sample has one reader, and the two nodes read equally many.
    const EpochShape shape{.count = 1000, .seed = 4, .ranks = 4};
    const std::vector<std::uint32_t> member_of{1, 0, 0, 1};
    const auto owners = owners_by_reads(shape, 1, member_of, 2);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        for (const SampleIndex sample : epoch_order(shape, 0, rank)) {
            EXPECT_EQ(owners[sample], member_of[rank]);
        }
    }
}

TEST(OwnersByReads, NoNodeOwnsMoreThanItsPart) {
    for (const std::uint16_t members :
         {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{3}, std::uint16_t{7}}) {
        // All ranks are on node 0.
        const EpochShape shape{.count = 1000, .seed = 4, .ranks = 4};
        const auto owners = owners_by_reads(shape, 3, std::vector<std::uint32_t>(4, 0), members);
        ASSERT_EQ(owners.size(), 1000U);
        for (std::uint16_t member = 0; member < members; ++member) {
            EXPECT_LE(std::ranges::count(owners, member), (1000 + members - 1) / members);
        }
    }
}

TEST(OwnersByReads, CountsTheRanksOfANodeTogether) {
    // Law T6 for 2 readers: one a node, or two of four. More epochs give less.
    for (const std::uint32_t ranks : {2U, 4U}) {
        for (const auto& [epochs, most] : {std::pair{3U, 0.75}, std::pair{10U, 0.623}}) {
            const EpochShape shape{.count = 10'000, .seed = 4, .ranks = ranks};
            std::vector<std::uint32_t> member_of(ranks);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                member_of[rank] = rank * 2 / ranks;
            }
            const auto owners = owners_by_reads(shape, epochs, member_of, 2);
            double own = 0;
            for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
                for_each_read(shape, epoch, [&](auto rank, SampleIndex sample, auto) {
                    own += owners[sample] == member_of[rank] ? 1 : 0;
                });
            }
            EXPECT_NEAR(own / (10'000.0 * epochs), most, 0.01) << epochs << " epochs";
        }
    }
}

TEST(OwnersByReads, PlacesAfterTheFirstEpochsOnly) {
    const EpochShape shape{.count = 50, .seed = 4, .ranks = 2, .shuffler = Shuffler::kTorch};
    const std::vector<std::uint32_t> member_of{0, 1};
    EXPECT_EQ(
        owners_by_reads(shape, UINT64_MAX, member_of, 2),
        owners_by_reads(shape, kPlacedEpochsMax, member_of, 2));
}

TEST(AccessCounts, BlockHasTheCountsOfTheWhole) {
    const EpochShape shape{.count = 100, .seed = 3, .ranks = 3};
    const AccessCounts whole{shape, 5};
    const AccessCounts block{shape, 5, std::vector<std::uint32_t>{1, 0, 1}, 2, 40, 30};
    for (SampleIndex sample = 0; sample < 30; ++sample) {
        EXPECT_EQ(block.at(0, sample), whole.at(1, 40 + sample));
        EXPECT_EQ(block.at(1, sample), whole.at(0, 40 + sample) + whole.at(2, 40 + sample));
    }
}

}  // namespace
}  // namespace stoker::sidecar
