#include "sidecar/core/sampling/importance_walk.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

LossRanks random_losses(std::uint32_t count, Prng& luck) {
    LossRanks losses(count);
    for (SampleIndex sample = 0; sample < count; ++sample) {
        losses.record(sample, static_cast<float>(std::exp(3 * luck.unit())));
    }
    losses.start();
    losses.advance(~std::uint64_t{0});
    return losses;
}

SamplerSettings settings(
    std::uint64_t seed,
    std::map<std::string, double, std::less<>> parameters = {},
    std::uint32_t ranks = 1) {
    return {
        .contract = "importance",
        .seed = seed,
        .ranks = ranks,
        .parameters = std::move(parameters)};
}

std::vector<ImportanceWalk::Step> all_steps(ImportanceWalk& walk, const LossRanks& losses) {
    std::vector<ImportanceWalk::Step> steps;
    while (const auto step = walk.next(losses)) {
        steps.push_back(*step);
    }
    return steps;
}

TEST(ImportanceWalk, ReadsEachSampleOnceInAFullEpoch) {
    const LossRanks losses(10);
    std::set<SampleIndex> seen;
    for (const std::uint32_t rank : {0U, 1U}) {
        ImportanceWalk walk(10, settings(4, {}, 2), rank);
        walk.begin(0, true, losses);
        for (const auto& step : all_steps(walk, losses)) {
            EXPECT_TRUE(step.important);
            EXPECT_TRUE(walk.share().owns(step.sample));
            EXPECT_TRUE(seen.insert(step.sample).second);
        }
    }
    EXPECT_EQ(seen.size(), 10U);
}

// Law T2 of `stoker laws`: 1/(1+beta), that is .752 at beta .33 and .5 at beta 1.
TEST(ImportanceWalk, KeepsAShareOfOneOverOnePlusBeta) {
    Prng luck(test::seed());
    for (const double beta : {0.33, 1.0}) {
        const LossRanks losses = random_losses(20000, luck);
        ImportanceWalk walk(20000, settings(luck(), {{"beta", beta}}), 0);
        double kept = 0;
        double important = 0;
        for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
            walk.begin(epoch, false, losses);
            for (const auto& step : all_steps(walk, losses)) {
                ++kept;
                important += step.important ? 1 : 0;
            }
        }
        EXPECT_NEAR(kept / 80000, 1 / (1 + beta), 0.01);
        EXPECT_NEAR(important / kept, 0.7, 0.015);
    }
}

// iCACHE's published sampler flags the i-th sample of its list by the loss of sample i.
TEST(ImportanceWalk, FlagsASampleByItsOwnLoss) {
    Prng luck(test::seed());
    const LossRanks losses = random_losses(20000, luck);
    ImportanceWalk walk(20000, settings(luck(), {{"beta", 1}}), 0);
    walk.begin(0, false, losses);
    const double border = ImportanceWalk::important_from(1, 0.7);
    EXPECT_NEAR(border, std::sqrt(0.3), 1e-12);
    for (const auto& step : all_steps(walk, losses)) {
        const double rank = losses.ranks()[step.sample];
        // The history has 1024 losses, so its percentile deviates by a few hundredths at most.
        if (rank > border + 0.08) {
            EXPECT_TRUE(step.important) << rank;
        }
        if (rank < border - 0.08) {
            EXPECT_FALSE(step.important) << rank;
        }
    }
}

TEST(ImportanceWalk, KeepsTheHardestSamplesAlmostAlways) {
    Prng luck(test::seed());
    const LossRanks losses = random_losses(20000, luck);
    ImportanceWalk walk(20000, settings(luck(), {{"beta", 1}}), 0);
    std::uint32_t hardest = 0;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        walk.begin(epoch, false, losses);
        for (const auto& step : all_steps(walk, losses)) {
            hardest += losses.ranks()[step.sample] > 0.99F ? 1 : 0;
        }
    }
    EXPECT_GT(hardest, 3 * 190U);  // of 200 each
}

TEST(ImportanceWalk, KeepsUnmeasuredSamples) {
    Prng luck(test::seed());
    LossRanks losses(2000);
    for (SampleIndex sample = 0; sample < 2000; sample += 2) {
        losses.record(sample, static_cast<float>(luck.unit()));
    }
    ImportanceWalk walk(2000, settings(luck(), {{"beta", 1}, {"lossHistory", 64}}), 0);
    walk.begin(0, false, losses);
    std::uint32_t unmeasured = 0;
    for (const auto& step : all_steps(walk, losses)) {
        if (step.sample % 2 == 1) {
            ++unmeasured;
            EXPECT_TRUE(step.important);
        }
    }
    EXPECT_EQ(unmeasured, 1000U);
}

TEST(ImportanceWalk, CountsLeftOutSamples) {
    Prng luck(test::seed());
    const LossRanks losses = random_losses(5000, luck);
    for (const std::uint32_t ranks : {1U, 3U}) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            ImportanceWalk walk(5000, settings(luck(), {{"beta", 1}}, ranks), rank);
            walk.begin(7, false, losses);
            std::int64_t left_out = 0;
            const auto steps = all_steps(walk, losses);
            for (const auto& step : steps) {
                left_out += step.left_out;
            }
            // The walk may keep samples after its last step, but does not read them.
            const auto kept = std::ranges::count(walk.kept(), true);
            const bool took_back = static_cast<std::size_t>(kept) < steps.size();
            const auto last = std::ranges::find(walk.kept().rbegin(), walk.kept().rend(), true);
            const auto after = took_back ? 0 : std::distance(walk.kept().rbegin(), last);
            EXPECT_EQ(
                left_out + static_cast<std::int64_t>(steps.size()) + after, walk.share().turns());
        }
    }
}

// DDP waits for every rank in every step: a rank with fewer batches would block the others.
TEST(ImportanceWalk, RanksReadEquallyManyDistinctSamples) {
    Prng luck(test::seed());
    const std::uint64_t seed = luck();
    const LossRanks losses = random_losses(9001, luck);
    for (const bool full : {true, false}) {
        std::set<std::size_t> lengths;
        std::set<SampleIndex> seen;
        std::size_t total = 0;
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            ImportanceWalk walk(9001, settings(seed, {{"lossHistory", 256}}, 4), rank);
            walk.begin(3, full, losses);
            const auto steps = all_steps(walk, losses);
            lengths.insert(steps.size());
            total += steps.size();
            for (const auto& step : steps) {
                seen.insert(step.sample);
            }
        }
        EXPECT_EQ(lengths.size(), 1U);
        // 9001 does not divide by 4: three ranks are padded with a sample of another rank.
        EXPECT_GE(seen.size() + 3, total);
    }
}

TEST(ImportanceWalk, RewindingYieldsTheSameSamplesDespiteNewLosses) {
    Prng luck(test::seed());
    for (const std::uint32_t ranks : {1U, 2U}) {
        LossRanks losses = random_losses(4000, luck);
        ImportanceWalk walk(4000, settings(luck(), {{"lossHistory", 128}}, ranks), 0);
        walk.begin(5, false, losses);
        std::vector<SampleIndex> first;
        for (int i = 0; i < 900; ++i) {
            first.push_back(walk.next(losses)->sample);
        }
        for (SampleIndex sample = 0; sample < 4000; ++sample) {
            losses.record(sample, static_cast<float>(luck.unit()));
        }
        walk.share().rewind();
        for (const SampleIndex sample : first) {
            ASSERT_EQ(walk.next(losses)->sample, sample);
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
