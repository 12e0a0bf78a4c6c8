#include "sidecar/core/sampling/importance_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/core/sampling/whole_epoch.h"

namespace stoker::sidecar {
namespace {

using Kind = Draw::Kind;

constexpr std::uint64_t kSelective = 7;  // not a multiple of 3, and after the warm-up

std::unique_ptr<ImportanceSampler> make(
    std::uint32_t count,
    SamplerSettings settings = {},
    const Residency& node = test::kEmptyNode,
    const ImportanceSampler::Tuning& tuning = {}) {
    settings.contract = "importance";
    auto sampler = ImportanceSampler::create(node, count, settings, tuning);
    EXPECT_TRUE(sampler.has_value());
    return *std::move(sampler);
}

// Reports a loss for every sample; the loss grows with the sample's number.
void teach(ImportanceSampler& sampler, std::uint32_t count) {
    for (SampleIndex sample = 0; sample < count; ++sample) {
        const float loss = 1.0F + static_cast<float>(sample);
        sampler.on_losses(0, std::span{&sample, 1}, std::span{&loss, 1});
    }
}

std::set<SampleIndex> served(const std::vector<Draw>& draws) {
    std::set<SampleIndex> samples;
    for (const Draw& draw : draws) {
        samples.insert(draw.served);
    }
    return samples;
}

TEST(ImportanceSampler, RejectsInvalidSettings) {
    const auto refuses = [](std::uint32_t count, SamplerSettings settings) {
        settings.contract = "importance";
        const auto made = ImportanceSampler::create(test::kEmptyNode, count, settings);
        return !made && made.error().code == ErrorCode::kInvalidArgument;
    };
    EXPECT_TRUE(refuses(0, {}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"beta", -0.1}}}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"beta", std::numeric_limits<double>::quiet_NaN()}}}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"hShare", 1.1}}}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"hShare", 0}}}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"reuseFactor", 0}}}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"reuseFactor", 1.5}}}));
    EXPECT_TRUE(refuses(9, {.parameters = {{"lossHistory", 0}}}));
    EXPECT_TRUE(refuses(9, {.ranks = 0}));
    EXPECT_FALSE(refuses(9, {}));
}

TEST(ImportanceSampler, ReadsAllSamplesInWarmUpAndInEpochsDivisibleByTheReuseFactor) {
    const auto sampler = make(500);
    teach(*sampler, 500);
    for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        const auto draws = whole_epoch(*sampler, 0, epoch);
        const bool full = epoch < 5 || epoch % 3 == 0;
        EXPECT_EQ(sampler->is_full(epoch), full);
        EXPECT_EQ(draws.size() == 500, full) << epoch;
        EXPECT_EQ(draws[0].kind == Kind::kPlain, full);
    }
}

TEST(ImportanceSampler, ReadsEverythingWithAReuseFactorOfOne) {
    const auto sampler = make(300, {.parameters = {{"reuseFactor", 1}}});
    teach(*sampler, 300);
    EXPECT_EQ(whole_epoch(*sampler, 0, 8).size(), 300U);
    EXPECT_FALSE(sampler->report(0).exact_fallback);
}

TEST(ImportanceSampler, StaysExactAndReportsItIfNoLossArrives) {
    const auto sampler = make(300);
    EXPECT_EQ(whole_epoch(*sampler, 0, 4).size(), 300U);
    EXPECT_FALSE(sampler->report(0).exact_fallback) << "the warm-up is full anyhow";
    const auto draws = whole_epoch(*sampler, 0, kSelective);
    EXPECT_EQ(served(draws).size(), 300U);
    EXPECT_TRUE(sampler->report(0).exact_fallback);
    EXPECT_EQ(draws[0].kind, Kind::kPlain);

    teach(*sampler, 300);
    EXPECT_LT(whole_epoch(*sampler, 0, kSelective + 1).size(), 300U);
    EXPECT_FALSE(sampler->report(0).exact_fallback);
}

TEST(ImportanceSampler, CountsUnusableLosses) {
    const auto sampler = make(10);
    sampler->begin_epoch(0, 0, 0);
    const SampleIndex samples[] = {1, 2, 3, 10};
    const float losses[] = {
        1.0F,
        std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity(),
        1.0F};
    sampler->on_losses(0, samples, losses);
    EXPECT_EQ(sampler->report(0).losses_used, 1U);
    EXPECT_EQ(sampler->report(0).losses_ignored, 3U);
    sampler->on_losses(0, samples, std::span{losses}.first(2));
    EXPECT_EQ(sampler->report(0).losses_used, 1U);
    EXPECT_EQ(sampler->report(0).losses_ignored, 7U);
    sampler->on_losses(0, {}, losses);
    EXPECT_EQ(sampler->report(0).losses_ignored, 11U);
}

// The published samplers of SHADE and iCACHE assign losses to the wrong samples.
TEST(ImportanceSampler, AssignsALossToTheServedSample) {
    const auto sampler = make(64);
    const SampleIndex samples[] = {40, 3};
    const float losses[] = {5.0F, 1.0F};
    sampler->on_losses(0, samples, losses);
    sampler->begin_epoch(0, kSelective, 0);
    EXPECT_FLOAT_EQ(sampler->relative_importance()[40], 0.75F);
    EXPECT_FLOAT_EQ(sampler->relative_importance()[3], 0.25F);
    EXPECT_EQ(sampler->relative_importance()[0], 1.0F);
}

TEST(ImportanceSampler, SubstitutesOnlyUnimportantSamplesByUnimportantResidents) {
    constexpr std::uint32_t kCount = 4000;
    test::NodeContents node;
    const auto sampler = make(kCount, {.seed = test::seed(), .parameters = {{"beta", 1}}}, node);
    teach(*sampler, kCount);
    sampler->begin_epoch(0, 5, 0);
    const double border = sampler->important_from();
    for (SampleIndex sample = 0; sample < kCount; sample += 4) {
        node.store(*sampler, sample);
    }
    const auto draws = whole_epoch(*sampler, 0, kSelective);
    std::uint64_t substituted = 0;
    std::set<SampleIndex> read;
    for (const Draw& draw : draws) {
        const bool read_before = read.contains(draw.requested);
        read.insert(draw.served);
        if (draw.served == draw.requested) {
            continue;
        }
        ++substituted;
        EXPECT_EQ(draw.kind, Kind::kSubstituted);
        EXPECT_EQ(draw.served % 4, 0U) << "it is on the node";
        EXPECT_LT(sampler->relative_importance()[draw.served], border);
        EXPECT_LT(sampler->relative_importance()[draw.requested], border + 0.1);
        EXPECT_TRUE(draw.requested % 4 != 0 || read_before) << "it is here itself";
    }
    EXPECT_GT(substituted, 200U);
    EXPECT_EQ(sampler->report(0).substituted, substituted);
}

TEST(ImportanceSampler, ServesNoSubstituteThatTheNodeHasDropped) {
    constexpr std::uint32_t kCount = 2000;
    test::NodeContents node;
    const auto sampler = make(kCount, {.seed = test::seed(), .parameters = {{"beta", 1}}}, node);
    teach(*sampler, kCount);
    sampler->begin_epoch(0, 5, 0);
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        node.store(*sampler, sample);
    }
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        node.drop(sample);
    }
    for (const Draw& draw : whole_epoch(*sampler, 0, kSelective)) {
        ASSERT_EQ(draw.served, draw.requested);
    }
}

TEST(ImportanceSampler, SubstitutesNothingIfDisabled) {
    test::NodeContents node;
    const auto sampler = make(1000, {.parameters = {{"beta", 1}, {"substitute", 0}}}, node);
    teach(*sampler, 1000);
    sampler->begin_epoch(0, 5, 0);
    for (SampleIndex sample = 0; sample < 1000; sample += 2) {
        node.store(*sampler, sample);
    }
    whole_epoch(*sampler, 0, kSelective);
    EXPECT_EQ(sampler->report(0).substituted, 0U);
    EXPECT_EQ(sampler->report(0).repeated, 0U);
}

// Compares every number of the report with the draws, while residents change.
TEST(ImportanceSampler, ReportMatchesTheDraws) {
    const std::uint64_t seed = test::seed();
    for (const std::uint32_t ranks : {1U, 3U}) {
        Prng luck(seed);
        constexpr std::uint32_t kCount = 3000;
        test::NodeContents node;
        const auto sampler = make(
            kCount,
            {.seed = luck(), .ranks = ranks, .parameters = {{"beta", 0.7}, {"lossHistory", 128}}},
            node);
        teach(*sampler, kCount);
        for (std::uint64_t epoch = 5; epoch < 9; ++epoch) {
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                std::vector<Draw> draws;
                sampler->begin_epoch(rank, epoch, 0);
                std::size_t before = 0;
                do {
                    before = draws.size();
                    sampler->draw(rank, 50, draws);
                    for (int i = 0; i < 40; ++i) {
                        node.store(*sampler, static_cast<SampleIndex>(luck.below(kCount)));
                        node.drop(static_cast<SampleIndex>(luck.below(kCount)));
                    }
                } while (draws.size() > before);
                const EpochReport report = sampler->report(rank);
                std::uint64_t substituted = 0;
                std::uint64_t repeated = 0;
                for (const Draw& draw : draws) {
                    substituted += draw.served != draw.requested ? 1 : 0;
                    repeated += draw.kind == Kind::kRepeated ? 1 : 0;
                }
                EXPECT_EQ(report.epoch, epoch);
                EXPECT_EQ(report.requested, draws.size());
                EXPECT_EQ(report.distinct, served(draws).size());
                EXPECT_EQ(report.repeated, repeated);
                EXPECT_EQ(report.requested, report.distinct + report.repeated);
                EXPECT_EQ(report.substituted, substituted);
                EXPECT_EQ(report.requested + report.skipped, (kCount + ranks - 1) / ranks);
            }
        }
    }
}

TEST(ImportanceSampler, DrawsTheForeseenSamples) {
    constexpr std::uint32_t kCount = 4000;
    test::NodeContents node;
    const auto sampler =
        make(kCount, {.seed = test::seed(), .parameters = {{"beta", 1}}}, node, {.horizon = 300});
    teach(*sampler, kCount);
    sampler->begin_epoch(0, kSelective, 0);
    for (int round = 0; round < 5; ++round) {
        std::vector<SampleIndex> foreseen;
        sampler->foresee(0, 200, foreseen);
        ASSERT_EQ(foreseen.size(), 200U);
        // The node has all foreseen samples, so each request for an unimportant sample (L-request)
        // is answered with one of them.
        for (const SampleIndex sample : foreseen) {
            node.store(*sampler, sample);
        }
        std::vector<Draw> draws;
        sampler->draw(0, 200, draws);
        for (std::size_t i = 0; i < draws.size(); ++i) {
            ASSERT_EQ(draws[i].served, foreseen[i]);
        }
    }
    EXPECT_GT(sampler->report(0).substituted, 200U);
    // A substitute is unread when it is served, but the job may request it later as an important
    // sample (H-request), which is never substituted: then the job reads it twice.
    EXPECT_LE(sampler->report(0).repeated, 1000U / 50);
}

// Adjacent samples (a package) are cheap to fetch together.
TEST(ImportanceSampler, ForeseenSubstitutesComeInRunsOfAdjacentSamples) {
    constexpr std::uint32_t kCount = 20000;
    const auto sampler = make(
        kCount,
        {.seed = test::seed(), .parameters = {{"beta", 1}}},
        test::kEmptyNode,
        {.package = 50});
    teach(*sampler, kCount);
    sampler->begin_epoch(0, kSelective, 0);
    std::vector<SampleIndex> foreseen;
    sampler->foresee(0, 2000, foreseen);
    std::set<SampleIndex> packages;
    std::uint32_t unimportant = 0;
    for (const SampleIndex sample : foreseen) {
        if (sampler->relative_importance()[sample] < sampler->important_from() - 0.1) {
            ++unimportant;
            packages.insert(sample / 50);
        }
    }
    EXPECT_GT(unimportant, 300U);
    EXPECT_LT(packages.size(), unimportant / 50 + 8);
}

// Residents that became unimportant after they were stored.
TEST(ImportanceSampler, SubstitutesByResidentsThatBecameUnimportant) {
    constexpr std::uint32_t kCount = 4000;
    test::NodeContents node;
    const auto sampler =
        make(kCount, {.seed = test::seed(), .parameters = {{"beta", 1}}}, node, {.horizon = 16});
    for (SampleIndex sample = 0; sample < 1000; ++sample) {
        node.store(*sampler, sample);
    }
    teach(*sampler, kCount);  // the residents are the least important
    std::uint32_t substituted = 0;
    std::set<SampleIndex> stand_ins;
    std::vector<SampleIndex> first;
    for (const Draw& draw : whole_epoch(*sampler, 0, kSelective)) {
        substituted += draw.kind == Kind::kSubstituted ? 1 : 0;
        if (draw.kind == Kind::kSubstituted) {
            EXPECT_LT(draw.served, 1000U);
            stand_ins.insert(draw.served);
            first.push_back(draw.served);
        }
    }
    // A selective epoch reads 2000 samples; 600 are unimportant, and some 60 of these residents.
    EXPECT_GT(substituted, 450U);
    EXPECT_EQ(stand_ins.size(), substituted) << "each once";
    std::uint32_t neighbours = 0;
    for (std::size_t i = 1; i < first.size(); ++i) {
        neighbours += first[i] == first[i - 1] + 1 ? 1 : 0;
    }
    EXPECT_LT(neighbours, 30U) << "a listing is often sorted by class";
}

TEST(ImportanceSampler, ResumesInMidEpochAtItsPosition) {
    constexpr std::uint32_t kCount = 3000;
    const auto sampler = make(kCount, {.seed = test::seed(), .parameters = {{"beta", 1}}});
    teach(*sampler, kCount);
    for (const std::uint64_t epoch : {std::uint64_t{6}, kSelective}) {
        const auto whole = whole_epoch(*sampler, 0, epoch);
        sampler->begin_epoch(0, epoch, 400);
        std::vector<Draw> rest;
        sampler->draw(0, 1000, rest);
        ASSERT_EQ(rest.size(), 1000U);
        for (std::size_t i = 0; i < rest.size(); ++i) {
            ASSERT_EQ(rest[i].requested, whole[400 + i].requested);
        }
        EXPECT_EQ(sampler->report(0).requested, 1400U);
    }
}

TEST(ImportanceSampler, StopsSkippingAtTheEndOfTheEpoch) {
    const auto sampler = make(100);
    sampler->begin_epoch(0, 0, 1U << 30U);
    std::vector<Draw> draws;
    sampler->draw(0, 10, draws);
    EXPECT_TRUE(draws.empty());
    EXPECT_EQ(sampler->report(0).requested, 100U);
}

TEST(ImportanceSampler, AllowsRanksAtDifferentEpochs) {
    constexpr std::uint32_t kCount = 1000;
    const auto sampler =
        make(kCount, {.ranks = 2, .parameters = {{"beta", 1}, {"lossHistory", 64}}});
    teach(*sampler, kCount);
    sampler->begin_epoch(0, kSelective, 0);
    sampler->begin_epoch(1, 9, 0);
    std::vector<Draw> one;
    std::vector<Draw> other;
    for (int i = 0; i < 100; ++i) {
        sampler->draw(0, 7, one);
        sampler->draw(1, 7, other);
    }
    EXPECT_EQ(one.size(), 250U);  // half of a share of 500
    EXPECT_EQ(other.size(), 500U);
    EXPECT_EQ(served(other).size(), 500U);
    EXPECT_EQ(sampler->report(0).epoch, kSelective);
    EXPECT_EQ(sampler->report(1).epoch, 9U);
}

TEST(ImportanceSampler, MakesTheSameChoicesOnEveryNode) {
    const SamplerSettings settings{.seed = 99, .ranks = 2, .parameters = {{"beta", 1}}};
    const auto here = make(2000, settings);
    const auto there = make(2000, settings);
    teach(*here, 2000);
    teach(*there, 2000);
    EXPECT_EQ(whole_epoch(*here, 1, kSelective), whole_epoch(*there, 1, kSelective));
}

}  // namespace
}  // namespace stoker::sidecar
