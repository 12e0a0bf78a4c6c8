#include "sidecar/core/sampling/resumed_epoch.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/epoch_permutation.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 400;
constexpr std::uint32_t kRanks = 3;

using test::NodeContents;
using Make = std::function<std::unique_ptr<Sampler>(const NodeContents& node, std::uint32_t ranks)>;

std::unique_ptr<Sampler> make_importance(
    const NodeContents& node, std::uint32_t ranks, bool substitute) {
    const SamplerSettings settings{
        .contract = "importance",
        .seed = 5,
        .ranks = ranks,
        .parameters = {
            {"beta", 1}, {"warmupEpochs", 1}, {"reuseFactor", 100}, {"substitute", substitute}}};
    return ImportanceSampler::create(node, kCount, settings, {.horizon = 32}).value();
}

std::unique_ptr<Sampler> make_buckets(
    const NodeContents& node, std::uint32_t ranks, Redundancy redundancy) {
    std::vector<Fingerprint> prints(kCount);
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        prints[sample] = sample / 4;  // groups of four near-duplicates
    }
    const SamplerSettings settings{
        .contract = "importance",
        .seed = 5,
        .ranks = ranks,
        .parameters = {
            {"family", 1}, {"outRate", 0.3}, {"redundancy", static_cast<double>(redundancy)}}};
    return BucketSampler::create(
               node, kCount, settings, {.adapt_rate = false, .groups = RedundancyGroups{prints, 0}})
        .value();
}

struct Kind {
    std::string name;
    Make make;
    bool has_stand_ins = false;  // a stand-in may itself be requested later, and repeat
    bool repeats = false;        // required by the contract
};

class ResumedEpochOf : public testing::TestWithParam<Kind> {};

const std::vector<Kind> kKinds = {
    {"Icache",
     [](const auto& node, auto ranks) { return make_importance(node, ranks, true); },
     true},
    {"IcacheWithoutSubstitution",
     [](const auto& node, auto ranks) { return make_importance(node, ranks, false); }},
    {"Iowa",
     [](const auto& node, auto ranks) { return make_buckets(node, ranks, Redundancy::kKeep); }},
    {"IowaWithRepeats",
     [](const auto& node, auto ranks) { return make_buckets(node, ranks, Redundancy::kRepeat); },
     true,
     true},
};

INSTANTIATE_TEST_SUITE_P(Samplers, ResumedEpochOf, testing::ValuesIn(kKinds), [](const auto& kind) {
    return kind.param.name;
});

// Stores a random half of the samples on the node and removes the others.
void store_half(NodeContents& node, Sampler& sampler, Prng& luck) {
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        luck.below(2) == 0 ? node.store(sampler, sample) : node.drop(sample);
    }
}

void teach(Sampler& sampler) {
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        const float loss = 0.1F + static_cast<float>(sample) / kCount;
        sampler.on_losses(0, std::span{&sample, 1}, std::span{&loss, 1});
    }
}

std::vector<Draw> draw_rest(Sampler& sampler, std::uint32_t rank) {
    std::vector<Draw> draws;
    for (std::size_t before = 1; draws.size() != std::exchange(before, draws.size());) {
        sampler.draw(rank, 7, draws);
    }
    return draws;
}

std::vector<bool> flags_of(const std::vector<Draw>& draws) {
    std::vector<bool> flags(kCount);
    for (const Draw& draw : draws) {
        flags[draw.served] = true;
    }
    return flags;
}

std::size_t count_again(const std::vector<bool>& had, const std::vector<Draw>& rest) {
    return static_cast<std::size_t>(
        std::ranges::count_if(rest, [&had](const Draw& draw) { return had[draw.served]; }));
}

std::size_t count_distinct(const std::vector<Draw>& draws) {
    std::set<SampleIndex> samples;
    for (const Draw& draw : draws) {
        samples.insert(draw.served);
    }
    return samples.size();
}

TEST_P(ResumedEpochOf, CompletesAFullEpochThatClientsBeganWithoutASidecar) {
    const std::uint64_t seed = test::seed();
    SCOPED_TRACE(seed);
    Prng luck(seed);
    NodeContents node;
    const auto sampler = GetParam().make(node, kRanks);
    const EpochPermutation order{kCount, 5, 0};
    std::set<SampleIndex> all;
    const std::uint32_t turns = (kCount + kRanks - 1) / kRanks;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        store_half(node, *sampler, luck);
        std::vector<bool> had(kCount);
        const auto skip = static_cast<std::uint32_t>(luck.below(turns));
        for (std::uint32_t turn = 0; turn < skip; ++turn) {
            const SampleIndex sample = order.at((turn * kRanks + rank) % kCount);
            had[sample] = true;
            all.insert(sample);
        }
        sampler->resume_epoch(rank, 0, skip, had);
        const auto rest = draw_rest(*sampler, rank);
        EXPECT_EQ(rest.size(), turns - skip);
        EXPECT_EQ(count_again(had, rest), 0U);
        for (const Draw& draw : rest) {
            all.insert(draw.served);
        }
        EXPECT_EQ(sampler->report(rank).requested, turns);
        EXPECT_EQ(sampler->report(rank).distinct, turns);
    }
    EXPECT_EQ(all.size(), kCount);
}

// The node stores other samples than when the first part was drawn.
TEST_P(ResumedEpochOf, RepeatsNoSampleAndKeepsRanksEquallyLong) {
    const std::uint64_t seed = test::seed();
    SCOPED_TRACE(seed);
    Prng luck(seed);
    for (const std::uint32_t ranks : {1U, kRanks}) {
        std::set<std::size_t> lengths;
        NodeContents node;
        const auto sampler = GetParam().make(node, ranks);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            sampler->begin_epoch(rank, 0, 0);
            draw_rest(*sampler, rank);
        }
        teach(*sampler);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            store_half(node, *sampler, luck);
            sampler->begin_epoch(rank, 1, 0);
            std::vector<Draw> first;
            sampler->draw(rank, 1 + luck.below(39), first);
            store_half(node, *sampler, luck);
            sampler->resume_epoch(rank, 1, first.size(), flags_of(first));
            const auto rest = draw_rest(*sampler, rank);
            EXPECT_GT(rest.size(), 0U);
            if (!GetParam().repeats) {
                EXPECT_EQ(count_again(flags_of(first), rest), 0U);
            }
            if (!GetParam().has_stand_ins) {
                EXPECT_EQ(count_distinct(rest), rest.size());
            }
            lengths.insert(first.size() + rest.size());
            EXPECT_EQ(sampler->report(rank).requested, first.size() + rest.size());
        }
        EXPECT_EQ(lengths.size(), 1U);
    }
}

// The epoch continues unchanged, because the node has not changed.
TEST_P(ResumedEpochOf, ContinuesUnchangedOnAnUnchangedNode) {
    if (GetParam().has_stand_ins) {
        return;  // the choice depends on the time of the draw
    }
    const std::uint64_t seed = test::seed();
    SCOPED_TRACE(seed);
    const auto epoch_of = [&](std::size_t broken_after) {
        Prng luck(seed);
        NodeContents node;
        const auto sampler = GetParam().make(node, 1);
        store_half(node, *sampler, luck);
        sampler->begin_epoch(0, 0, 0);
        draw_rest(*sampler, 0);
        teach(*sampler);
        sampler->begin_epoch(0, 1, 0);
        std::vector<Draw> draws;
        sampler->draw(0, broken_after, draws);
        if (broken_after > 0) {
            sampler->resume_epoch(0, 1, draws.size(), flags_of(draws));
        }
        const auto rest = draw_rest(*sampler, 0);
        draws.insert(draws.end(), rest.begin(), rest.end());
        return draws;
    };
    const auto whole = epoch_of(0);
    const auto broken = epoch_of(50);
    std::vector<SampleIndex> asked;
    std::vector<SampleIndex> asked_again;
    std::ranges::transform(whole, std::back_inserter(asked), &Draw::requested);
    std::ranges::transform(broken, std::back_inserter(asked_again), &Draw::requested);
    EXPECT_EQ(asked, asked_again);
}

TEST(ResumedEpoch, SkipsOneStepPerEarlierDraw) {
    ResumedEpoch resumed{{true, false, false, true}, 3, 4};
    EpochReport report;
    resumed.count_had(report);
    EXPECT_EQ(report, (EpochReport{.requested = 3, .distinct = 2, .repeated = 1}));
    EXPECT_FALSE(resumed.settle(1, false));
    EXPECT_TRUE(resumed.settle(0, false));
    EXPECT_TRUE(resumed.settle(1, true));
    EXPECT_TRUE(resumed.settle(3, false));
    EXPECT_FALSE(resumed.settle(2, true));
    EXPECT_FALSE(resumed.has_ended());
    resumed.take();
    EXPECT_TRUE(resumed.has_ended());
}

TEST(ResumedEpoch, EndsIfMoreDrawsWereServedThanItHas) {
    EXPECT_TRUE((ResumedEpoch{{true, true}, 9, 4}.has_ended()));
}

}  // namespace
}  // namespace stoker::sidecar
