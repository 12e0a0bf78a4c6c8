#include "sidecar/core/sampling/bucket_sampler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/make_bucket_sampler.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/core/sampling/whole_epoch.h"

namespace stoker::sidecar {
namespace {

using Kind = Draw::Kind;

TEST(BucketSampler, RejectsInvalidSettings) {
    const auto refuses = [](const SamplerSettings& settings) {
        const auto made = BucketSampler::create(test::kEmptyNode, 9, settings);
        return !made && made.error().code == ErrorCode::kInvalidArgument;
    };
    EXPECT_FALSE(BucketSampler::create(test::kEmptyNode, 0, settings_of({})).has_value());
    EXPECT_TRUE(refuses(settings_of({{"outRate", -0.1}})));
    EXPECT_TRUE(refuses(settings_of({{"minFraction", 1.5}})));
    EXPECT_TRUE(refuses(settings_of({{"recallAfter", 0}})));
    EXPECT_TRUE(refuses(settings_of({{"recallFraction", std::nan("")}})));
    EXPECT_TRUE(refuses(settings_of({}, 0, 0)));
    EXPECT_FALSE(refuses(settings_of({})));
}

TEST(BucketSampler, MovesTheLeastImportantSamplesOutEveryEpoch) {
    const auto sampler = make(1000, {{"outRate", 0.1}, {"minFraction", 0.5}});
    EXPECT_EQ(whole_epoch(*sampler, 0, 0).size(), 1000U);
    teach(*sampler, 1000);
    EXPECT_EQ(whole_epoch(*sampler, 0, 1).size(), 900U);
    EXPECT_TRUE(sampler->buckets().waits(0));
    EXPECT_TRUE(sampler->buckets().waits(99));
    EXPECT_FALSE(sampler->buckets().waits(100));
    sampler->on_quality(0.5);
    EXPECT_EQ(whole_epoch(*sampler, 0, 2).size(), 810U);
    EXPECT_EQ(sampler->report(0).skipped, 190U);
    EXPECT_EQ(sampler->report(0).distinct, 810U);
}

TEST(BucketSampler, RatesReadSamplesEquallyAndLeftOutOnesLower) {
    const auto sampler = make(1000, {{"outRate", 0.1}, {"minFraction", 0.5}});
    whole_epoch(*sampler, 0, 0);
    const auto worths = sampler->relative_importance();
    EXPECT_EQ(std::ranges::count(worths, 1.0F), 1000);
    teach(*sampler, 1000);
    for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
        whole_epoch(*sampler, 0, epoch);
        for (SampleIndex sample = 0; sample < 1000; ++sample) {
            EXPECT_EQ(worths[sample] == 1.0F, !sampler->buckets().waits(sample));
            EXPECT_LT(sampler->buckets().waits(sample) ? worths[sample] : 0, 0.5F);
        }
    }
    EXPECT_LT(worths[0], worths[99]);
}

TEST(BucketSampler, NeverShrinksBelowTheMinimumFraction) {
    const auto sampler = make(100, {{"outRate", 0.5}, {"minFraction", 0.4}});
    teach(*sampler, 100);
    for (std::uint64_t epoch = 1; epoch < 8; ++epoch) {
        sampler->on_quality(0.1 * static_cast<double>(epoch));  // steadily improves
        EXPECT_GE(whole_epoch(*sampler, 0, epoch).size(), 40U);
    }
    EXPECT_EQ(sampler->buckets().waiting(), 60U);
}

// A group of near-duplicates counts as one sample, whichever of its members has the higher score.
TEST(BucketSampler, MinimumFractionCountsAGroupOfNearDuplicatesOnce) {
    std::vector<RedundancyGroups::Copy> copies;
    for (SampleIndex sample = 0; sample < 50; ++sample) {
        copies.emplace_back(sample + 50, sample);
    }
    for (const double spread : {0.6, -0.6}) {  // copies have higher ids: harder or easier
        const auto sampler = make_grouped(
            100,
            {{"outRate", 0.5}, {"minFraction", 0.4}, {"redundancy", kRemove}},
            RedundancyGroups::of(100, copies));
        for (SampleIndex sample = 0; sample < 100; ++sample) {
            learn(*sampler, sample, static_cast<float>(0.5 - spread * (sample / 100.0 - 0.5)));
        }
        for (std::uint64_t epoch = 1; epoch < 8; ++epoch) {
            sampler->on_quality(0.1 * static_cast<double>(epoch));  // steadily improves
            EXPECT_EQ(whole_epoch(*sampler, 0, epoch).size(), epoch == 1 ? 25U : 20U);
        }
        EXPECT_EQ(sampler->buckets().waiting(), 30U);
    }
}

TEST(BucketSampler, MovesMoreSamplesOutTheFasterTheJobLearns) {
    const auto adapting = settings_of({{"outRate", 0.2}, {"minFraction", 0}});
    const auto sampler = make(1000, adapting, {});
    teach(*sampler, 1000);
    sampler->on_quality(0.25);
    EXPECT_EQ(whole_epoch(*sampler, 0, 1).size(), 950U);
    sampler->on_quality(0.5);
    EXPECT_EQ(whole_epoch(*sampler, 0, 2).size(), 855U);

    const auto by_loss = make(1000, adapting, {});
    teach(*by_loss, 1000, 0.9);
    EXPECT_EQ(whole_epoch(*by_loss, 0, 1).size(), 1000U) << "nothing has been learnt yet";
    teach(*by_loss, 1000, 0.1);
    EXPECT_LT(whole_epoch(*by_loss, 0, 2).size(), 900U);
}

// Each epoch reads fewer samples while the job improves. Once it stops improving, samples that were
// left out ("waiting") are read again.
TEST(BucketSampler, RecallsWaitingSamplesWhenProgressStops) {
    const auto sampler = make(
        1000,
        settings_of(
            {{"outRate", 0.2}, {"minFraction", 0.1}, {"recallAfter", 2}, {"recallFraction", 0.5}},
            test::seed()));
    teach(*sampler, 1000);
    std::size_t before = 1001;
    for (std::uint64_t epoch = 1; epoch < 5; ++epoch) {
        sampler->on_quality(0.1 * static_cast<double>(epoch));
        const std::size_t visited = whole_epoch(*sampler, 0, epoch).size();
        EXPECT_LT(visited, before);
        before = visited;
    }
    sampler->on_quality(0.4);
    before = whole_epoch(*sampler, 0, 5).size();
    const std::uint32_t waited = sampler->buckets().waiting();
    sampler->on_quality(0.4);
    EXPECT_EQ(whole_epoch(*sampler, 0, 6).size(), before + (waited + 1) / 2);
    EXPECT_EQ(sampler->buckets().waiting(), waited / 2);
    std::uint32_t counted = 0;
    for (SampleIndex sample = 0; sample < 1000; ++sample) {
        counted += sampler->buckets().waits(sample) ? 1 : 0;
    }
    EXPECT_EQ(counted, sampler->buckets().waiting());
}

TEST(BucketSampler, NeverMovesOutUnmeasuredSamples) {
    const auto sampler = make(100, {{"outRate", 1}, {"minFraction", 0}});
    for (SampleIndex sample = 0; sample < 100; sample += 2) {
        learn(*sampler, sample, 0.9F);
    }
    const auto draws = whole_epoch(*sampler, 0, 1);
    EXPECT_EQ(draws.size(), 50U);
    for (const Draw& draw : draws) {
        EXPECT_EQ(draw.requested % 2, 1U);
    }
}

// The samples that the sampler leaves out after an epoch of equal losses. `waitings`: reported
// shares of the time in which the job waited for data.
std::vector<SampleIndex> out_after(std::initializer_list<double> waitings) {
    const auto size_of = [](SampleIndex sample) { return Bytes{sample < 50 ? 100U : 900U}; };
    const auto sampler = make(
        100,
        settings_of({{"outRate", 0.1}}),
        {.criteria = {.size_of = size_of}, .adapt_rate = false});
    for (SampleIndex sample = 0; sample < 100; ++sample) {
        learn(*sampler, sample, 0.5F);
    }
    for (const double share : waitings) {
        sampler->on_waiting(share);
    }
    whole_epoch(*sampler, 0, 1);
    std::vector<SampleIndex> out;
    for (SampleIndex sample = 0; sample < 100; ++sample) {
        if (sampler->buckets().waits(sample)) {
            out.push_back(sample);
        }
    }
    return out;
}

TEST(BucketSampler, LeavesOutLargeSamplesOnlyWhileIoBound) {
    const auto only_large = [](std::initializer_list<double> waitings) {
        const auto out = out_after(waitings);
        EXPECT_EQ(out.size(), 10U);
        return std::ranges::all_of(out, [](SampleIndex sample) { return sample >= 50; });
    };
    EXPECT_TRUE(only_large({})) << "no report yet";
    EXPECT_TRUE(only_large({0.5}));
    EXPECT_FALSE(only_large({0.01}));
    EXPECT_FALSE(only_large({0.01, 0.07})) << "in between it stays as it was";
    EXPECT_TRUE(only_large({0.01, 0.2}));
    EXPECT_TRUE(only_large({0.5, std::nan(""), -1, 7})) << "no shares";
}

TEST(BucketSampler, SnapshotRestoresWhetherTheJobIsIoBound) {
    const auto before = make(10);
    before->on_waiting(0);
    ASSERT_EQ(before->buckets().criteria().bottleneck(), Bottleneck::kCompute);
    const auto after = make(10);
    ASSERT_TRUE(after->restore(before->snapshot()));
    EXPECT_EQ(after->buckets().criteria().bottleneck(), Bottleneck::kCompute);
    before->on_waiting(1);
    ASSERT_TRUE(after->restore(before->snapshot()));
    EXPECT_EQ(after->buckets().criteria().bottleneck(), Bottleneck::kIo);
}

TEST(BucketSampler, StaysExactAndReportsItIfNoLossArrives) {
    const auto sampler = make(50);
    EXPECT_EQ(whole_epoch(*sampler, 0, 0).size(), 50U);
    EXPECT_FALSE(sampler->report(0).exact_fallback);
    EXPECT_EQ(whole_epoch(*sampler, 0, 4).size(), 50U);
    EXPECT_TRUE(sampler->report(0).exact_fallback);
}

TEST(BucketSampler, ReadsOneOfEachGroupOfNearDuplicatesIfCopiesAreRemoved) {
    const std::vector<Fingerprint> prints = {1, 900, 1, 0xFFFF, 1, 0xFFFF};
    const auto sampler = make_grouped(6, {{"outRate", 0}, {"redundancy", kRemove}}, {prints, 0});
    teach(*sampler, 6);
    std::set<SampleIndex> seen_ever;
    for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
        std::set<Fingerprint> groups;
        for (const Draw& draw : whole_epoch(*sampler, 0, epoch)) {
            groups.insert(prints[draw.served]);
            seen_ever.insert(draw.served);
        }
        EXPECT_EQ(groups.size(), 3U);
        EXPECT_EQ(sampler->report(0).requested, 3U);
        EXPECT_EQ(sampler->report(0).skipped, 3U);
    }
    EXPECT_EQ(seen_ever.size(), 6U) << "every member has had its turn";
}

std::vector<SampleIndex> served_of(const std::vector<Draw>& draws) {
    std::vector<SampleIndex> served;
    for (const Draw& draw : draws) {
        served.push_back(draw.served);
    }
    return served;
}

// A trainer that resumes from an older checkpoint reads the same members again.
TEST(BucketSampler, ARepeatedEpochReadsTheSameMembersOfItsGroups) {
    const std::vector<Fingerprint> prints = {1, 900, 1, 0xFFFF, 1, 0xFFFF};
    const auto sampler = make_grouped(6, {{"outRate", 0}, {"redundancy", kRemove}}, {prints, 0});
    teach(*sampler, 6);
    std::vector<std::vector<SampleIndex>> first;
    for (std::uint64_t epoch = 0; epoch < 7; ++epoch) {
        first.push_back(served_of(whole_epoch(*sampler, 0, epoch)));
    }
    for (const std::uint64_t epoch : {2U, 3U, 1U, 5U, 6U}) {
        EXPECT_EQ(served_of(whole_epoch(*sampler, 0, epoch)), first[epoch]) << epoch;
    }
}

// The other rank's next epoch has moved samples and reads other group members.
TEST(BucketSampler, ARankDrawsItsEpochUnchangedThoughAnotherIsAhead) {
    constexpr std::uint32_t kSamples = 400;
    const std::uint64_t seed = test::seed();
    std::vector<Fingerprint> prints(kSamples);
    for (SampleIndex sample = 0; sample < kSamples; ++sample) {
        prints[sample] = sample % 300;  // a hundred pairs
    }
    const auto rest_of_rank_1 = [&](bool other_is_ahead) {
        const auto sampler = make(
            kSamples,
            settings_of({{"outRate", 0.2}, {"redundancy", kRemove}}, seed, 2),
            {.adapt_rate = false, .groups = {prints, 0}});
        teach(*sampler, kSamples);
        whole_epoch(*sampler, 0, 1);
        std::vector<Draw> draws;
        sampler->begin_epoch(1, 1, 0);
        sampler->draw(1, 20, draws);
        if (other_is_ahead) {
            sampler->begin_epoch(0, 2, 0);
        }
        sampler->draw(1, kSamples, draws);
        return served_of(draws);
    };
    EXPECT_EQ(rest_of_rank_1(true), rest_of_rank_1(false)) << "STOKER_TEST_SEED=" << seed;
}

// Samples 2, 4 and 7 are near-duplicates. While 2 is on the node, it is served for requests for 4
// and 7 (the example of the slides that describe importance sampling of family Iowa).
TEST(BucketSampler, ServesAResidentOfTheSameGroupIfCopiesRepeat) {
    const std::vector<Fingerprint> prints = {10, 20, 1, 30, 1, 5, 5, 1};
    test::NodeContents node;
    const auto sampler =
        make_grouped(8, {{"outRate", 0}, {"redundancy", kRepeat}}, {prints, 0}, node);
    teach(*sampler, 8);
    node.store(2);
    sampler->begin_epoch(0, 1, 0);
    std::vector<SampleIndex> foreseen;
    sampler->foresee(0, 8, foreseen);
    EXPECT_EQ(std::count(foreseen.begin(), foreseen.end(), SampleIndex{2}), 3);
    std::vector<Draw> draws;
    sampler->draw(0, 8, draws);
    for (const Draw& draw : draws) {
        const bool of_the_group = prints[draw.requested] == 1;
        EXPECT_EQ(draw.served, of_the_group ? 2 : draw.requested);
    }
    EXPECT_EQ(sampler->report(0).substituted, 2U);
    EXPECT_EQ(sampler->report(0).repeated, 2U);
    EXPECT_EQ(sampler->report(0).distinct, 6U);
}

// If a share w of the samples is on the node, and each belongs to a group of m near-duplicates, a
// request hits with probability 1-(1-w)^m instead of w.
TEST(BucketSampler, HitsAGroupIfAnyMemberIsStored) {
    Prng luck(test::seed());
    constexpr std::uint32_t kCount = 30000;
    std::vector<Fingerprint> prints(kCount);
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        prints[sample] = sample / 3;
    }
    test::NodeContents node;
    const auto sampler =
        make_grouped(kCount, {{"outRate", 0}, {"redundancy", kRepeat}}, {prints, 0}, node);
    teach(*sampler, kCount);
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        if (luck.unit() < 0.2) {
            node.store(sample);
        }
    }
    double hits = 0;
    for (const Draw& draw : whole_epoch(*sampler, 0, 1)) {
        hits += node.is_stored(draw.served) ? 1 : 0;
    }
    EXPECT_NEAR(hits / kCount, 1 - std::pow(0.8, 3), 0.015);
}

TEST(BucketSampler, ReportedStatisticsMatchTheDrawnSamples) {
    Prng luck(test::seed());
    for (const std::uint32_t ranks : {1U, 3U}) {
        constexpr std::uint32_t kCount = 500;
        std::vector<Fingerprint> prints(kCount);
        for (Fingerprint& print : prints) {
            print = luck.below(200);
        }
        test::NodeContents node;
        const auto sampler = make(
            kCount,
            settings_of({{"outRate", 0.2}, {"redundancy", kRepeat}}, luck(), ranks),
            {.adapt_rate = false, .groups = {prints, 0}},
            node);
        teach(*sampler, kCount);
        for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
            std::set<std::size_t> lengths;
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                node.store(static_cast<SampleIndex>(luck.below(kCount)));
                const auto draws = whole_epoch(*sampler, rank, epoch);
                const EpochReport report = sampler->report(rank);
                std::set<SampleIndex> distinct;
                std::uint64_t substituted = 0;
                for (const Draw& draw : draws) {
                    distinct.insert(draw.served);
                    substituted += draw.served != draw.requested ? 1 : 0;
                    EXPECT_EQ(prints[draw.served], prints[draw.requested]);
                }
                lengths.insert(draws.size());
                EXPECT_EQ(report.requested, draws.size());
                EXPECT_EQ(report.distinct, distinct.size());
                EXPECT_EQ(report.repeated, draws.size() - distinct.size());
                EXPECT_EQ(report.substituted, substituted);
                EXPECT_EQ(report.skipped + report.requested, (kCount + ranks - 1) / ranks);
            }
            EXPECT_EQ(lengths.size(), 1U) << "all ranks read equally many";
        }
    }
}

TEST(BucketSampler, ResumesInMidEpochAndAcrossProcesses) {
    const SamplerSettings settings = settings_of({{"outRate", 0.3}}, 5);
    const auto before = make(400, settings);
    teach(*before, 400);
    before->on_quality(0.5);
    const auto whole = whole_epoch(*before, 0, 1);
    const auto after = make(400, settings);
    ASSERT_TRUE(after->restore(before->snapshot()));
    EXPECT_EQ(after->buckets().waiting(), before->buckets().waiting());
    after->begin_epoch(0, 1, 100);
    std::vector<Draw> rest;
    after->draw(0, 400, rest);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + 100, whole.end()));
    EXPECT_EQ(after->report(0).requested, whole.size());

    std::string damaged = before->snapshot();
    damaged.pop_back();
    EXPECT_FALSE(make(400, settings)->restore(damaged));
    EXPECT_FALSE(make(401, settings)->restore(before->snapshot()));

    SamplerSettings of_two = settings;
    of_two.ranks = 2;
    const auto elsewhere = make(400, of_two);
    ASSERT_TRUE(elsewhere->restore(before->snapshot()));
    EXPECT_EQ(elsewhere->buckets().waiting(), before->buckets().waiting());
}

TEST(BucketSampler, UsesTheOtherProbabilitiesAndIgnoresUnusableOnes) {
    const auto sampler = make(10);
    sampler->begin_epoch(0, 0, 0);
    const SampleIndex samples[] = {1, 2, 3, 10, UINT32_MAX};
    const float losses[] = {1, 1, 1, 1, 1};
    const float p_others[] = {0.25F, std::nanf(""), 1e30F, 0.5F, 0.5F};
    sampler->on_losses(0, samples, losses);
    sampler->on_p_others(samples, p_others);
    sampler->on_p_others(samples, std::span{p_others}.first(2));
    const BucketCriteria& criteria = sampler->buckets().criteria();
    EXPECT_NEAR(criteria.p_other(1), 0.25, 1e-4);
    EXPECT_FALSE(criteria.knows_other(2));
    EXPECT_FALSE(criteria.knows_other(3));
    EXPECT_EQ(sampler->report(0).losses_used, 3U) << "a loss counts without it";
}

TEST(BucketSampler, CountsUnusableLosses) {
    const auto sampler = make(10);
    sampler->begin_epoch(0, 0, 0);
    const SampleIndex samples[] = {1, 10};
    const float losses[] = {1.0F, 1.0F};
    sampler->on_losses(0, samples, losses);
    sampler->on_losses(0, samples, std::span{losses}.first(1));
    EXPECT_EQ(sampler->report(0).losses_used, 1U);
    EXPECT_EQ(sampler->report(0).losses_ignored, 3U);
}

}  // namespace
}  // namespace stoker::sidecar
