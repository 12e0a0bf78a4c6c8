#include "sidecar/core/sampling/replicate_sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

std::unique_ptr<ReplicateSampler> make(
    std::uint32_t samples,
    SamplerSettings settings = {},
    const Residency& node = test::kEmptyNode) {
    settings.contract = "replicate";
    return *ReplicateSampler::create(node, samples, settings);
}

std::vector<SampleIndex> draw(ReplicateSampler& sampler, std::uint32_t rank, std::size_t count) {
    std::vector<Draw> draws;
    sampler.draw(rank, count, draws);
    std::vector<SampleIndex> samples;
    for (const Draw& one : draws) {
        samples.push_back(one.served);
    }
    return samples;
}

TEST(ReplicateSampler, DrawsInTheFirstEpochWithoutWarmUp) {
    const auto sampler = make(1000, {.parameters = {{"warmupEpochs", 0}}});
    sampler->begin_epoch(0, 0, 0);
    const auto samples = draw(*sampler, 0, 1000);
    EXPECT_NEAR(static_cast<double>(std::set(samples.begin(), samples.end()).size()), 632, 60)
        << "1 - 1/e of them";
}

// Ranks of a job that reconnect read the same samples as without the break.
TEST(ReplicateSampler, RestartsAnEpochWithTheSameDraws) {
    test::NodeContents node;
    const auto sampler = make(200, {.seed = 4, .ranks = 2}, node);
    for (const std::uint32_t rank : {0U, 1U}) {
        sampler->begin_epoch(rank, 1, 0);
    }
    const auto all = draw(*sampler, 0, 200);
    for (SampleIndex sample = 0; sample < 50; ++sample) {
        node.store(sample);  // would be read several times if the epoch had not begun
    }
    sampler->begin_epoch(0, 1, 30);
    EXPECT_EQ(draw(*sampler, 0, 200), std::vector(all.begin() + 30, all.end()));
}

TEST(ReplicateSampler, ShufflesTheFirstEpoch) {
    test::NodeContents node;
    node.store(5);
    const auto sampler = make(100, {}, node);
    sampler->begin_epoch(0, 0, 0);
    const auto samples = draw(*sampler, 0, 1000);
    EXPECT_EQ(samples.size(), 100U);
    EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), 100U);
}

TEST(ReplicateSampler, ReadsResidentsSeveralTimes) {
    for (const double replication : {1.0, 2.5, 3.0}) {
        const auto sampler = make(1000, {.seed = 1, .parameters = {{"replication", 1}}});
        test::NodeContents node;
        const auto replicating =
            make(1000, {.seed = 1, .parameters = {{"replication", replication}}}, node);
        for (SampleIndex sample = 0; sample < 100; ++sample) {
            node.store(sample);
        }
        sampler->begin_epoch(0, 1, 0);
        replicating->begin_epoch(0, 1, 0);
        const auto resident = [](SampleIndex sample) { return sample < 100; };
        const auto once = std::ranges::count_if(draw(*sampler, 0, 1000), resident);
        const auto samples = draw(*replicating, 0, 1000);
        EXPECT_EQ(samples.size(), 1000U);
        EXPECT_NEAR(
            static_cast<double>(std::ranges::count_if(samples, resident)),
            replication * static_cast<double>(once),
            0.5);
        const EpochReport report = replicating->report(0);
        EXPECT_EQ(report.requested, 1000U);
        EXPECT_EQ(report.distinct + report.repeated, report.requested);
        EXPECT_EQ(report.distinct, std::set(samples.begin(), samples.end()).size());
        EXPECT_EQ(report.skipped, 1000 - report.distinct);
    }
}

TEST(ReplicateSampler, RanksShareTheSameDraws) {
    for (const bool aggressive : {false, true}) {
        const auto alone = make(1000, {.seed = 3});
        const auto shared = make(1000, {.seed = 3, .ranks = 4});
        for (ReplicateSampler* sampler : {alone.get(), shared.get()}) {
            sampler->on_validation(aggressive ? 0.1 : -0.1);
            EXPECT_EQ(sampler->is_aggressive(), aggressive);
        }
        alone->begin_epoch(0, 2, 0);
        auto want = draw(*alone, 0, 1000);
        std::vector<SampleIndex> got;
        std::set<SampleIndex> seen;
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            shared->begin_epoch(rank, 2, 0);
            const auto part = draw(*shared, rank, 1000);
            EXPECT_EQ(part.size(), 250U);
            const std::set<SampleIndex> distinct(part.begin(), part.end());
            if (aggressive) {
                for (const SampleIndex sample : distinct) {
                    EXPECT_TRUE(seen.insert(sample).second) << "all copies go to one rank";
                }
            }
            got.insert(got.end(), part.begin(), part.end());
        }
        std::ranges::sort(got);
        std::ranges::sort(want);
        EXPECT_EQ(got, want);
    }
}

// Number of occurrences of each sample.
std::vector<std::uint32_t> times_of(const std::vector<SampleIndex>& samples, std::uint32_t count) {
    std::vector<std::uint32_t> times(count);
    for (const SampleIndex sample : samples) {
        ++times[sample];
    }
    return times;
}

// An epoch's draws, and how they are divided among `ranks` ranks.
struct Parts {
    Parts(std::uint32_t samples, std::uint32_t ranks, double accuracy_change) {
        const auto alone = make(samples, {.seed = 3});
        const auto shared = make(samples, {.seed = 3, .ranks = ranks});
        for (ReplicateSampler* sampler : {alone.get(), shared.get()}) {
            sampler->on_validation(accuracy_change);
        }
        alone->begin_epoch(0, 2, 0);
        drawn = times_of(draw(*alone, 0, samples), samples);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            shared->begin_epoch(rank, 2, 0);
            of_rank.push_back(times_of(draw(*shared, rank, samples), samples));
        }
    }

    std::vector<std::uint32_t> drawn;  // by sample
    std::vector<std::vector<std::uint32_t>> of_rank;
};

// PADS: whatever number of copies counts as "most drawn", each rank gets an equal share of these
// samples. All copies of a sample go to one rank, so a node reads as few different samples as
// possible: with 4 ranks some 29 % fewer than with copies at random.
TEST(ReplicateSampler, RanksGetEqualSharesOfTheMostDrawnIfValidationImproves) {
    constexpr std::uint32_t kSamples = 6000;
    for (const std::uint32_t ranks : {2U, 3U, 4U}) {
        const Parts parts{kSamples, ranks, 0.1};
        const std::uint32_t most = std::ranges::max(parts.drawn);
        for (std::uint32_t least = 1; least <= most; ++least) {
            SCOPED_TRACE(testing::Message() << ranks << " ranks, drawn at least " << least);
            std::vector<std::uint32_t> most_drawn;
            for (const auto& part : parts.of_rank) {
                std::uint32_t here = 0;
                for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
                    here += parts.drawn[sample] >= least ? part[sample] : 0;
                    EXPECT_TRUE(part[sample] == 0 || part[sample] == parts.drawn[sample]);
                }
                most_drawn.push_back(here);
            }
            EXPECT_LE(std::ranges::max(most_drawn) - std::ranges::min(most_drawn), most);
        }
        const auto drawn = kSamples - std::ranges::count(parts.drawn, 0U);
        for (const auto& part : parts.of_rank) {
            const auto distinct = kSamples - std::ranges::count(part, 0U);
            EXPECT_NEAR(
                static_cast<double>(distinct),
                static_cast<double>(drawn) / ranks,
                2 + .005 * kSamples);
        }
    }
}

// If validation gets worse or does not change, a rank gets n of the N draws at random: it has none
// of the m copies of a sample with probability C(N-m, n) / C(N, n).
TEST(ReplicateSampler, RanksGetCopiesAtRandomIfValidationDoesNotImprove) {
    constexpr std::uint32_t kSamples = 24'000;
    for (const double change : {-0.1, 0.0}) {
        for (const std::uint32_t ranks : {2U, 3U, 4U}) {
            SCOPED_TRACE(testing::Message() << ranks << " ranks, change " << change);
            const Parts parts{kSamples, ranks, change};
            const std::uint32_t size = kSamples / ranks;
            double distinct = 0;
            double if_even = 0;
            for (const std::uint32_t copies : parts.drawn) {
                double none = 1;
                for (std::uint32_t i = 0; i < copies; ++i) {
                    none *= static_cast<double>(kSamples - size - i) /
                            static_cast<double>(kSamples - i);
                }
                distinct += 1 - none;
                if_even += std::min(1.0, static_cast<double>(copies) / ranks);
            }
            constexpr double kTolerance = 0.015;  // four standard deviations
            ASSERT_GT(if_even, distinct * (1 + 2 * kTolerance)) << "or nothing is told apart";
            for (const auto& part : parts.of_rank) {
                const auto got = kSamples - std::ranges::count(part, 0U);
                EXPECT_NEAR(static_cast<double>(got), distinct, distinct * kTolerance);
            }
        }
    }
}

std::uint32_t sum_of(const ReadsLeft& left, std::uint32_t count) {
    std::uint32_t sum = 0;
    for (SampleIndex sample = 0; sample < count; ++sample) {
        sum += left.of(sample);
    }
    return sum;
}

TEST(ReplicateSampler, CountsTheReadsLeftOfAllLocalRanks) {
    const auto sampler = make(1000, {.seed = 3, .ranks = 4});
    const auto left = sampler->reads_left();
    std::vector<std::uint32_t> times(1000);
    for (const std::uint32_t rank : {1U, 3U}) {
        sampler->begin_epoch(rank, 2, 0);
        EXPECT_EQ(sum_of(*left, 1000), rank == 1 ? 250U : 500U);
    }
    for (const std::uint32_t rank : {1U, 3U}) {
        const auto samples = draw(*sampler, rank, 1000);
        for (const SampleIndex sample : samples) {
            ++times[sample];
        }
        for (SampleIndex sample = 0; rank == 3 && sample < 1000; ++sample) {
            EXPECT_EQ(left->of(sample), times[sample]);
        }
    }
    sampler->on_read(std::vector<SampleIndex>{
        static_cast<SampleIndex>(std::ranges::max_element(times) - times.begin())});
    EXPECT_EQ(sum_of(*left, 1000), 499U);
    sampler->begin_epoch(1, 2, 100);
    EXPECT_EQ(sum_of(*left, 1000), 499U) << "a rank that reconnects is not counted twice";
    sampler->begin_epoch(3, 3, 50);
    EXPECT_EQ(sum_of(*left, 1000), 200U) << "the next epoch, from the resumed position on";
}

// A trainer that resumes from an older checkpoint will not make the aborted epoch's reads.
TEST(ReplicateSampler, ForgetsTheReadsOfAnEpochThatIsAborted) {
    const auto sampler = make(1000, {.seed = 3, .ranks = 4});
    const auto left = sampler->reads_left();
    for (const std::uint64_t epoch : {5U, 3U, 4U, 2U}) {
        for (const std::uint32_t rank : {1U, 3U}) {
            sampler->begin_epoch(rank, epoch, 0);
            EXPECT_EQ(sum_of(*left, 1000), rank == 1 ? 250U : 500U) << "epoch " << epoch;
        }
    }
}

// The second rank shares the draws that the first one fixed, whatever was learnt in between.
TEST(ReplicateSampler, RanksShareTheDrawsOfARepeatedEpoch) {
    const auto of_rank_1 = [](bool learns) {
        const auto sampler = make(1000, {.seed = 3, .ranks = 2});
        for (const std::uint32_t rank : {0U, 1U}) {
            sampler->begin_epoch(rank, 5, 0);
        }
        sampler->begin_epoch(0, 3, 0);
        if (learns) {
            std::vector<SampleIndex> samples(1000);
            std::iota(samples.begin(), samples.end(), 0);
            sampler->on_losses(0, samples, std::vector<float>(samples.begin(), samples.end()));
        }
        sampler->begin_epoch(1, 3, 0);
        return draw(*sampler, 1, 1000);
    };
    EXPECT_EQ(of_rank_1(true), of_rank_1(false));
}

TEST(ReplicateSampler, KeepsTheReadsOfARankThatIsAhead) {
    const auto sampler = make(1000, {.seed = 3, .ranks = 4});
    const auto left = sampler->reads_left();
    sampler->begin_epoch(1, 2, 0);
    sampler->begin_epoch(3, 2, 0);
    sampler->begin_epoch(1, 4, 0);
    EXPECT_EQ(sum_of(*left, 1000), 250U);
    sampler->begin_epoch(3, 3, 0);
    EXPECT_EQ(sum_of(*left, 1000), 500U) << "rank 3 is late; rank 1 will still make its reads";
}

// Measures the longest distance between copies of a sample that is not on the node.
TEST(ReplicateSampler, GathersCopiesIfTheNodeHasRoomForFew) {
    constexpr std::uint32_t kSamples = 40'000;
    for (const std::uint32_t kept : {0U, 2000U, 4000U, 20'000U}) {
        test::NodeContents node;
        for (SampleIndex sample = 0; sample < kept; ++sample) {
            node.store(sample, true);
        }
        const auto sampler =
            make(kSamples, {.seed = 3, .batch = 16, .parameters = {{"replication", 1}}}, node);
        sampler->begin_epoch(0, 1, 0);
        std::map<SampleIndex, std::size_t> first;
        std::size_t longest = 0;
        const auto samples = draw(*sampler, 0, kSamples);
        for (std::size_t position = 0; position < samples.size(); ++position) {
            if (samples[position] >= kept) {
                const auto [found, is_new] = first.try_emplace(samples[position], position);
                longest = std::max(longest, position - found->second);
            }
        }
        // .373 of the draws repeat an earlier one. The sampler divides the epoch into so many
        // blocks that each has at most `kept` repeats.
        const double repeats = .373 * kSamples;
        const double blocks = kept == 0 ? 1 : std::ceil(repeats / kept);
        EXPECT_LT(static_cast<double>(longest), 1.15 * (kSamples - kept) / blocks) << kept;
        EXPECT_GT(static_cast<double>(longest), .85 * (kSamples - 1.2 * kept) / blocks) << kept;
    }
}

TEST(ReplicateSampler, BatchesContainFewRepeatsIfTheNodeKeepsOneSample) {
    constexpr std::uint32_t kSamples = 20'000;
    test::NodeContents node;
    node.store(0, true);
    const auto sampler =
        make(kSamples, {.seed = 3, .batch = 16, .parameters = {{"replication", 1}}}, node);
    sampler->begin_epoch(0, 1, 0);
    const auto samples = draw(*sampler, 0, kSamples);
    std::size_t repeats = 0;
    for (std::size_t batch = 0; batch < samples.size(); batch += 16) {
        const auto at = samples.begin() + static_cast<std::ptrdiff_t>(batch);
        repeats += 16 - std::set<SampleIndex>(at, at + 16).size();
    }
    EXPECT_LT(static_cast<double>(repeats), .03 * kSamples) << ".373 of all draws are repeats";
}

TEST(ReplicateSampler, ForgetsOldValidations) {
    const auto sampler = make(10);
    for (const double change : {-9.0, 0.1, 0.1, 0.1}) {
        sampler->on_validation(change);
    }
    EXPECT_TRUE(sampler->is_aggressive());
}

TEST(ReplicateSampler, AssignsLossesToTheServedIds) {
    const auto sampler = make(50);
    sampler->begin_epoch(0, 0, 0);
    const auto batch = draw(*sampler, 0, 3);
    sampler->on_losses(0, batch, std::vector<float>{5.0F, 1.0F, 3.0F});
    EXPECT_GT(sampler->score(batch[0]), sampler->score(batch[2]));
    EXPECT_GT(sampler->score(batch[2]), sampler->score(batch[1]));
    EXPECT_EQ(sampler->report(0).losses_used, 3U);
    sampler->on_losses(0, batch, std::vector<float>{5.0F});
    EXPECT_EQ(sampler->report(0).losses_ignored, 3U);
    const auto importance = sampler->relative_importance();
    EXPECT_EQ(importance.size(), 50U);
    EXPECT_FLOAT_EQ(importance[batch[0]], 0.98F);
}

TEST(ReplicateSampler, ResumesFromASnapshot) {
    const auto sampler = make(50, {.seed = 2});
    sampler->begin_epoch(0, 0, 0);
    for (int batch = 0; batch < 5; ++batch) {
        const auto samples = draw(*sampler, 0, 10);
        std::vector<float> losses;
        for (const SampleIndex sample : samples) {
            losses.push_back(static_cast<float>(sample));
        }
        sampler->on_losses(0, samples, losses);
    }
    sampler->begin_epoch(0, 1, 0);
    const std::string state = sampler->snapshot();
    const auto resumed = make(50, {.seed = 2});
    ASSERT_TRUE(resumed->restore(state));
    resumed->begin_epoch(0, 1, 20);
    draw(*sampler, 0, 20);
    EXPECT_EQ(draw(*resumed, 0, 100), draw(*sampler, 0, 100));
    for (std::size_t size = 0; size < state.size(); ++size) {
        EXPECT_FALSE(resumed->restore(state.substr(0, size)));
    }
    EXPECT_FALSE(make(51)->restore(state));
}

TEST(ReplicateSampler, RejectsInvalidSettings) {
    const auto refused = [](std::uint32_t samples, SamplerSettings settings) {
        settings.contract = "replicate";
        return !ReplicateSampler::create(test::kEmptyNode, samples, settings).has_value();
    };
    EXPECT_TRUE(refused(10, {.parameters = {{"bias", 1}}}));
    EXPECT_TRUE(refused(10, {.parameters = {{"replication", 0.5}}}));
    EXPECT_TRUE(refused(10, {.parameters = {{"replication", 1.3}}}));
    EXPECT_TRUE(refused(10, {.parameters = {{"unseenScore", -1}}}));
    EXPECT_TRUE(refused(0, {}));
    EXPECT_FALSE(refused(10, {}));
}

}  // namespace
}  // namespace stoker::sidecar
