// With several ranks, the length of an epoch follows from parameters and epoch number alone.
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/make_bucket_sampler.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/core/sampling/whole_epoch.h"

namespace stoker::sidecar {
namespace {

TEST(EqualEpochs, WithSeveralRanksTheBucketSizeDependsOnTheEpochOnly) {
    const auto sampler = make(
        1000,
        settings_of({{"outRate", 0.1}, {"recallAfter", 2}}, test::seed(), 2),
        BucketOptions{});
    teach(*sampler, 1000);
    const std::vector<std::uint32_t> waiting{0, 100, 190, 95, 186};
    for (std::uint64_t epoch = 0; epoch < waiting.size(); ++epoch) {
        whole_epoch(*sampler, 0, epoch);
        EXPECT_NEAR(sampler->buckets().waiting(), waiting[epoch], 1) << epoch;
        EXPECT_TRUE(epoch != 1 || sampler->buckets().waits(0));
        EXPECT_FALSE(sampler->buckets().waits(999));
    }
}

// Ranks on nodes that know different losses, or none.
TEST(EqualEpochs, RanksOnSeveralNodesReadEquallyMany) {
    const std::uint64_t seed = test::seed();
    Prng luck(seed);
    for (int round = 0; round < 20; ++round) {
        const auto count = static_cast<std::uint32_t>(50 + luck.below(500));
        const auto ranks = static_cast<std::uint32_t>(2 + luck.below(4));
        const auto settings = settings_of(
            {{"outRate", luck.unit()},
             {"minFraction", luck.unit()},
             {"recallAfter", static_cast<double>(1 + luck.below(4))},
             {"recallFraction", luck.unit()},
             {"redundancy", static_cast<double>(luck.below(3))}},
            luck(),
            ranks);
        std::vector<std::unique_ptr<BucketSampler>> nodes;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            std::vector<Fingerprint> prints(count);
            for (Fingerprint& print : prints) {
                print = luck.below(count);
            }
            nodes.push_back(make(count, settings, {.groups = {prints, 0}}));
        }
        for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
            const std::uint32_t expected =
                settings.draws_of_epoch(epoch, (count + ranks - 1) / ranks);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                EXPECT_EQ(whole_epoch(*nodes[rank], rank, epoch).size(), expected)
                    << "epoch " << epoch << " STOKER_TEST_SEED=" << seed;
                for (SampleIndex sample = rank; rank > 0 && sample < count; sample += ranks) {
                    learn(*nodes[rank], sample, static_cast<float>(luck.unit()));
                }
            }
        }
    }
}

TEST(EqualEpochs, ARankWhoseNodeKnowsNoLossReadsAsManyAsTheOthers) {
    constexpr std::uint32_t kCount = 301;
    const SamplerSettings settings{
        .contract = "importance", .ranks = 2, .parameters = {{"beta", 1}}};
    const auto knows = ImportanceSampler::create(test::kEmptyNode, kCount, settings).value();
    const auto knows_nothing =
        ImportanceSampler::create(test::kEmptyNode, kCount, settings).value();
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        const float loss = 1.0F + static_cast<float>(sample);
        knows->on_losses(0, std::span{&sample, 1}, std::span{&loss, 1});
    }
    EXPECT_EQ(whole_epoch(*knows, 0, 7).size(), 76U);
    EXPECT_EQ(whole_epoch(*knows_nothing, 1, 7).size(), 76U);
    EXPECT_EQ(whole_epoch(*knows_nothing, 1, 9).size(), 151U);
}

}  // namespace
}  // namespace stoker::sidecar
