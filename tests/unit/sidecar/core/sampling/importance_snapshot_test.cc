#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 4000;
constexpr std::uint64_t kEpoch = 7;

std::unique_ptr<ImportanceSampler> make(
    std::uint64_t seed, std::uint32_t count = kCount, std::uint32_t ranks = 1) {
    return *ImportanceSampler::create(
        test::kEmptyNode,
        count,
        {.contract = "importance", .seed = seed, .ranks = ranks, .parameters = {{"beta", 1}}});
}

void teach(ImportanceSampler& sampler, Prng& luck) {
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        const auto loss = static_cast<float>(std::exp(4 * luck.unit()));
        sampler.on_losses(0, std::span{&sample, 1}, std::span{&loss, 1});
    }
}

TEST(ImportanceSnapshot, RestoresImportanceToOneByteOfPrecision) {
    Prng luck(test::seed());
    const auto before = make(3);
    teach(*before, luck);
    before->begin_epoch(0, kEpoch, 0);
    const auto after = make(3);
    ASSERT_TRUE(after->restore(before->snapshot()));
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        const float want = before->relative_importance()[sample];
        ASSERT_NEAR(after->relative_importance()[sample], want, 1.6 / 255);
    }
}

TEST(ImportanceSnapshot, ResumesInMidEpochWithTheSameSamples) {
    Prng luck(test::seed());
    const auto before = make(3);
    teach(*before, luck);
    before->begin_epoch(0, kEpoch, 0);
    std::vector<Draw> first;
    before->draw(0, 500, first);
    const auto after = make(3);
    ASSERT_TRUE(after->restore(before->snapshot()));
    after->begin_epoch(0, kEpoch, 500);
    std::vector<Draw> want;
    std::vector<Draw> got;
    before->draw(0, 1000, want);
    after->draw(0, 1000, got);
    for (std::size_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(got[i].requested, want[i].requested);
    }
    EXPECT_EQ(after->report(0).requested, 1500U);
}

TEST(ImportanceSnapshot, TakesAboutOneBytePerSample) {
    Prng luck(test::seed());
    const auto sampler = make(3);
    teach(*sampler, luck);
    sampler->begin_epoch(0, kEpoch, 0);
    std::vector<Draw> draws;
    sampler->draw(0, kCount, draws);
    EXPECT_LT(sampler->snapshot().size(), kCount * 1.25 + 1100);
}

TEST(ImportanceSnapshot, RejectsASnapshotOfAnotherJob) {
    Prng luck(test::seed());
    const auto sampler = make(3);
    teach(*sampler, luck);
    const std::string snapshot = sampler->snapshot();
    EXPECT_FALSE(make(4)->restore(snapshot));
    EXPECT_FALSE(make(3, kCount + 1)->restore(snapshot));
}

TEST(ImportanceSnapshot, KeepsTheLossesForAnotherNumberOfRanks) {
    Prng luck(test::seed());
    const auto before = make(3);
    teach(*before, luck);
    before->begin_epoch(0, kEpoch, 0);
    std::vector<Draw> draws;
    before->draw(0, 500, draws);
    const auto after = make(3, kCount, 2);
    ASSERT_TRUE(after->restore(before->snapshot()));
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        const float want = before->relative_importance()[sample];
        ASSERT_NEAR(after->relative_importance()[sample], want, 1.6 / 255);
    }
    draws.clear();
    for (const std::uint32_t rank : {0U, 1U}) {
        after->begin_epoch(rank, kEpoch + 1, 0);
        after->draw(rank, kCount, draws);
    }
    EXPECT_EQ(draws.size(), kCount / 2);  // 1 / (1 + beta) of all
}

// Snapshots are untrusted: other programs may write the file.
TEST(ImportanceSnapshot, CorruptSnapshotIsRejectedOrIgnored) {
    Prng luck(test::seed());
    const auto sampler = make(3);
    teach(*sampler, luck);
    sampler->begin_epoch(0, kEpoch, 0);
    const std::string snapshot = sampler->snapshot();
    for (int i = 0; i < 60; ++i) {
        std::string damaged = snapshot;
        damaged.resize(luck.below(snapshot.size()));
        EXPECT_FALSE(make(3)->restore(damaged));
        damaged = snapshot;
        for (int flips = 0; flips < 8; ++flips) {
            damaged[luck.below(damaged.size())] = static_cast<char>(luck());
        }
        const auto victim = make(3);
        victim->restore(damaged);
        victim->begin_epoch(0, kEpoch, 10);
        std::vector<Draw> draws;
        victim->draw(0, 2 * kCount, draws);
        EXPECT_LE(draws.size(), kCount);
    }
}

}  // namespace
}  // namespace stoker::sidecar
