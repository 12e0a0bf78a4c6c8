#include "sidecar/core/sampling/replicate_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "sidecar/core/sampling/exact_order.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using Draws = std::vector<SampleIndex>;

// `count` draws; a higher `skew` draws few samples more often.
Draws random_draws(std::uint32_t count, double skew, Prng& prng) {
    Draws draws;
    for (std::uint32_t i = 0; i < count; ++i) {
        draws.push_back(static_cast<SampleIndex>(count * std::pow(prng.unit(), skew)));
    }
    return draws;
}

Draws sorted(Draws draws) {
    std::ranges::sort(draws);
    return draws;
}

std::map<SampleIndex, std::uint32_t> times_of(const Draws& draws) {
    std::map<SampleIndex, std::uint32_t> times;
    for (const SampleIndex sample : draws) {
        ++times[sample];
    }
    return times;
}

TEST(GatherCopies, GivesEachSampleToOneRankAndEachRankItsLength) {
    Prng prng{test::seed()};
    for (int round = 0; round < 50; ++round) {
        const auto count = static_cast<std::uint32_t>(1000 + prng.below(4000));
        const auto ranks = static_cast<std::uint32_t>(2 + prng.below(9));
        SCOPED_TRACE(testing::Message() << count << " draws, " << ranks << " ranks");
        const Draws draws = random_draws(count, 1.2, prng);
        const Draws gathered = gather_copies(draws, count, ranks);
        EXPECT_EQ(sorted(gathered), sorted(draws));
        std::map<SampleIndex, std::set<std::size_t>> ranks_of;
        for (std::size_t position = 0; position < count; ++position) {
            ranks_of[gathered[position]].insert(position % ranks);
        }
        for (const auto& [sample, its] : ranks_of) {
            ASSERT_EQ(its.size(), 1U) << "sample " << sample;
        }
    }
}

// SHADE's aggressive distribution (PADS): whatever number of copies counts as "most drawn", the
// ranks' shares of these samples differ by at most one sample's copies.
TEST(GatherCopies, GivesEachRankAnEqualShareOfTheMostDrawn) {
    Prng prng{test::seed()};
    constexpr std::uint32_t kCount = 6000;
    const Draws draws = random_draws(kCount, 1.5, prng);
    const auto times = times_of(draws);
    const std::uint32_t most =
        std::ranges::max_element(times, {}, [](auto& one) { return one.second; })->second;
    for (const std::uint32_t ranks : {2U, 3U, 8U}) {
        const Draws gathered = gather_copies(draws, kCount, ranks);
        for (std::uint32_t least = 1; least <= most; ++least) {
            std::vector<std::uint32_t> parts(ranks);
            for (std::size_t position = 0; position < kCount; ++position) {
                parts[position % ranks] += times.at(gathered[position]) >= least ? 1 : 0;
            }
            EXPECT_LE(std::ranges::max(parts) - std::ranges::min(parts), most) << least;
        }
    }
}

TEST(GatherCopies, SplitsCopiesThatFitIntoNoRank) {
    const Draws draws{7, 7, 7, 7, 7, 7, 7, 1};
    EXPECT_EQ(sorted(gather_copies(draws, 8, 4)), sorted(draws));
    EXPECT_EQ(gather_copies({0}, 1, 4), Draws{0}) << "more ranks than draws";
}

// The positions of a sample's first and last draw.
struct Extent {
    std::size_t first = 0;
    std::size_t last = 0;
};

std::map<SampleIndex, Extent> extents_of(const Draws& draws) {
    std::map<SampleIndex, Extent> extents;
    for (std::size_t position = 0; position < draws.size(); ++position) {
        extents.try_emplace(draws[position], Extent{position, position}).first->second.last =
            position;
    }
    return extents;
}

// The largest number of samples that have a draw before and a draw after the same position.
std::size_t most_waiting(const Draws& draws) {
    std::vector<int> change(draws.size() + 1);
    for (const auto& [sample, extent] : extents_of(draws)) {
        ++change[extent.first];
        --change[extent.last];
    }
    int waiting = 0;
    int most = 0;
    for (const int step : change) {
        waiting += step;
        most = std::max(most, waiting);
    }
    return static_cast<std::size_t>(most);
}

TEST(GatherRepeats, PutsAllCopiesOfASampleIntoOneBlock) {
    Prng prng{test::seed()};
    constexpr std::uint32_t kCount = 20'000;
    for (const std::uint32_t blocks : {1U, 2U, 7U, 40U}) {
        SCOPED_TRACE(testing::Message() << blocks << " blocks");
        Draws draws = random_draws(kCount, 1, prng);
        const Draws before = draws;
        gather_repeats(draws, blocks, prng);
        EXPECT_EQ(sorted(draws), sorted(before));
        std::size_t longest = 0;
        for (const auto& [sample, extent] : extents_of(draws)) {
            longest = std::max(longest, extent.last - extent.first);
        }
        const double length = static_cast<double>(kCount) / blocks;
        EXPECT_LT(static_cast<double>(longest), length + 8 * std::sqrt(2 * length));
        // With Poisson numbers of copies (mean 1) in random order, (1 - 1/sqrt(e))^2 = .155 of a
        // block's samples have copies on both sides of its middle, where most samples wait.
        EXPECT_NEAR(static_cast<double>(most_waiting(draws)), .155 * length, 3 * std::sqrt(length));
    }
}

// A sample's block does not depend on the other draws, so ranks of one node read its copies at
// about the same time.
TEST(GatherRepeats, ChoosesTheBlockByTheSampleAlone) {
    Draws all(10'000);
    std::ranges::generate(all, [next = 0U]() mutable { return next++; });
    Draws half;
    std::ranges::copy_if(
        all, std::back_inserter(half), [](SampleIndex sample) { return sample % 2 == 0; });
    const Prng prng{5};
    gather_repeats(all, 2, prng);
    gather_repeats(half, 2, prng);
    const std::set<SampleIndex> early(all.begin(), all.begin() + 5000);
    EXPECT_GT(
        std::ranges::count_if(
            half.begin(), half.begin() + 2500, [&](SampleIndex s) { return early.contains(s); }),
        2400);
}

TEST(GatherRepeats, KeepsARandomOrderInABlock) {
    Prng prng{test::seed()};
    constexpr std::uint32_t kCount = 20'000;
    Draws draws(kCount);
    std::ranges::generate(draws, [next = 0U]() mutable { return next++; });
    shuffle(draws, prng);
    gather_repeats(draws, 4, prng);
    for (std::size_t part = 0; part < 10; ++part) {
        double sum = 0;
        for (std::size_t i = 0; i < kCount / 10; ++i) {
            sum += draws[part * kCount / 10 + i];
        }
        // Six standard deviations of the mean of 2,000 uniform ids.
        EXPECT_NEAR(sum / (kCount / 10), kCount / 2, 6 * kCount / std::sqrt(12.0 * kCount / 10));
    }
}

TEST(GatherRepeats, AcceptsAnEmptyList) {
    Draws none;
    gather_repeats(none, 3, Prng{1});
    EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace stoker::sidecar
