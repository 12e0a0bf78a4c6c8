#include "sidecar/core/sampling/sample_buckets.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 100;

SampleBuckets make(double redundancy = 0) {
    const SamplerSettings settings{
        .contract = "importance",
        .parameters = {{"family", 1}, {"outRate", 0.1}, {"redundancy", redundancy}}};
    return {kCount, settings, {.adapt_rate = false}};
}

// Higher samples are harder.
void teach(SampleBuckets& buckets) {
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        buckets.criteria().record_probability(
            sample, 1 - 0.6F * static_cast<float>(sample) / kCount);
    }
}

TEST(SampleBuckets, MovesSamplesOncePerEpoch) {
    SampleBuckets buckets = make();
    teach(buckets);
    buckets.begin_epoch(0);
    EXPECT_EQ(buckets.size(), kCount) << "a regular epoch";
    for (int rank = 0; rank < 3; ++rank) {
        buckets.begin_epoch(1);
        EXPECT_EQ(buckets.size(), 90U);
    }
    buckets.begin_epoch(0);
    EXPECT_EQ(buckets.size(), 90U) << "a rank that is late changes nothing";
    EXPECT_TRUE(buckets.waits(0));
    EXPECT_FALSE(buckets.contains(0));
    EXPECT_TRUE(buckets.contains(10));
}

TEST(SampleBuckets, RemovedDuplicatesAreNeitherReadNorWaiting) {
    SampleBuckets buckets = make(static_cast<double>(Redundancy::kRemove));
    const SampleIndex alike[] = {3, 7};
    const std::uint64_t hashes[] = {0xFF, 0xFE};
    buckets.on_similarity(alike, hashes);
    EXPECT_EQ(buckets.size(), kCount) << "not before the next epoch";
    buckets.begin_epoch(0);
    EXPECT_EQ(buckets.size(), kCount - 1);
    EXPECT_TRUE(buckets.contains(3));
    EXPECT_FALSE(buckets.contains(7));
    EXPECT_FALSE(buckets.waits(7));
    EXPECT_TRUE(buckets.alike(3).empty()) << "copies do not repeat";
    EXPECT_EQ(buckets.worths()[3], buckets.worths()[7]) << "the cache needs both equally";
    EXPECT_GT(buckets.worths()[7], 0.5F);
}

// A trainer that resumes from an older checkpoint reads the same members again.
TEST(SampleBuckets, ARepeatedEpochReadsTheSameGroupMembers) {
    SampleBuckets buckets = make(static_cast<double>(Redundancy::kRemove));
    const SampleIndex alike[] = {3, 7, 9};
    const std::uint64_t hashes[] = {0xFF, 0xFE, 0xFF};
    buckets.on_similarity(alike, hashes);
    for (const std::uint64_t epoch : {0U, 1U, 2U, 3U, 1U, 2U, 2U, 0U, 4U, 5U}) {
        buckets.begin_epoch(epoch);
        EXPECT_EQ(buckets.size(), kCount - 2);
        for (std::size_t i = 0; i < std::size(alike); ++i) {
            EXPECT_EQ(buckets.contains(alike[i]), epoch % 3 == i) << epoch;
        }
    }
}

TEST(SampleBuckets, AnEpochsReadsDoNotChangeWhenTheNextBegins) {
    SampleBuckets buckets = make();
    teach(buckets);
    buckets.begin_epoch(1);
    const auto held = buckets.reads();
    const std::vector<bool> before = *held;
    buckets.begin_epoch(2);
    EXPECT_EQ(*held, before);
    EXPECT_NE(*buckets.reads(), before) << "more samples are outside";
}

// In a group of any size, no member waits more than kTurnsMax epochs for a read.
TEST(SampleBuckets, SamplesOfARedundancyGroupAreReadInTurn) {
    constexpr std::uint32_t kMembers[] = {2, 3, 4, 11};
    std::vector<RedundancyGroups::Copy> copies;
    SampleIndex first = 5;
    for (const std::uint32_t members : kMembers) {
        for (SampleIndex copy = 1; copy < members; ++copy) {
            copies.emplace_back(first + copy, first);
        }
        first += members;
    }
    const SamplerSettings settings{
        .contract = "importance",
        .parameters = {{"family", 1}, {"redundancy", static_cast<double>(Redundancy::kRemove)}}};
    SampleBuckets buckets{kCount, settings, {.groups = RedundancyGroups::of(kCount, copies)}};
    std::vector<std::uint64_t> last_read(kCount, 0);
    for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        buckets.begin_epoch(epoch);
        std::uint32_t read = 0;
        for (SampleIndex sample = 0; sample < kCount; ++sample) {
            read += buckets.contains(sample) ? 1 : 0;
            last_read[sample] = buckets.contains(sample) ? epoch : last_read[sample];
            EXPECT_LT(epoch, last_read[sample] + SampleBuckets::kTurnsMax);
        }
        EXPECT_EQ(read, kCount - 20U + 1 + 1 + 1 + 3) << "eleven are three parts";
        EXPECT_EQ(buckets.size(), read);
    }
    EXPECT_EQ(buckets.worths()[0], 1.0F);
    EXPECT_EQ(buckets.worths()[5], 0.75F) << "read in every second epoch";
}

TEST(SampleBuckets, AGroupLeavesTheBucketByTheScoreOfTheMemberReadLast) {
    const RedundancyGroups::Copy pair{1, 0};
    const SamplerSettings settings{
        .contract = "importance",
        .parameters = {
            {"family", 1},
            {"outRate", 0.02},
            {"redundancy", static_cast<double>(Redundancy::kRemove)}}};
    for (const bool first_is_easy : {true, false}) {
        SampleBuckets buckets{
            kCount,
            settings,
            {.adapt_rate = false, .groups = RedundancyGroups::of(kCount, {&pair, 1})}};
        buckets.begin_epoch(0);
        for (SampleIndex sample = 0; sample < kCount; ++sample) {
            const bool easy = sample == (first_is_easy ? 0U : 1U);
            buckets.criteria().record_probability(sample, easy ? 0.99F : 0.6F);
        }
        buckets.begin_epoch(1);  // epoch 0 read the first
        EXPECT_EQ(buckets.waits(0), first_is_easy);
        EXPECT_EQ(buckets.waits(1), first_is_easy);
        EXPECT_EQ(buckets.waiting(), 1U);
    }
}

// Samples that the model has learnt have about equal scores: if the first ones in the listing were
// left out, they might all be of one class.
TEST(SampleBuckets, ChoosesAtRandomAmongSamplesOfEqualScore) {
    SampleBuckets buckets = make();
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        buckets.criteria().record_probability(sample, 0.5F);
    }
    buckets.begin_epoch(1);
    EXPECT_EQ(buckets.waiting(), 10U);
    SampleIndex below_half = 0;
    for (SampleIndex sample = 0; sample < kCount / 2; ++sample) {
        below_half += buckets.waits(sample) ? 1 : 0;
    }
    EXPECT_GT(below_half, 0U);
    EXPECT_LT(below_half, 10U);
}

TEST(SampleBuckets, LoadTimeChangesOnlyBetweenEpochs) {
    std::optional<double> measured = 4096;
    const SamplerSettings settings{.contract = "importance", .parameters = {{"family", 1}}};
    SampleBuckets buckets{kCount, settings, {.latency_bytes = [&] { return measured; }}};
    teach(buckets);
    buckets.begin_epoch(1);
    EXPECT_EQ(buckets.criteria().latency_bytes(), 4096);
    measured = 8192;
    buckets.begin_epoch(1);
    EXPECT_EQ(buckets.criteria().latency_bytes(), 4096) << "another rank begins the same epoch";
    buckets.begin_epoch(2);
    EXPECT_EQ(buckets.criteria().latency_bytes(), 8192);
    measured.reset();
    buckets.begin_epoch(3);
    EXPECT_EQ(buckets.criteria().latency_bytes(), 8192) << "nothing new was measured";
}

TEST(SampleBuckets, SurvivesARoundTripThroughBytes) {
    SampleBuckets before = make();
    teach(before);
    before.on_quality(0.5);
    before.on_waiting(0);
    before.criteria().set_latency_bytes(65536);
    before.criteria().record_other(7, 0.25F);
    before.begin_epoch(1);
    WireWriter out;
    before.write(out);
    SampleBuckets after = make();
    WireReader in{out.view()};
    ASSERT_TRUE(after.read(in));
    EXPECT_EQ(in.left(), 0U);
    EXPECT_EQ(after.waiting(), before.waiting());
    EXPECT_EQ(after.criteria().bottleneck(), Bottleneck::kCompute);
    EXPECT_EQ(after.criteria().latency_bytes(), 65536);
    EXPECT_NEAR(after.criteria().p_other(7), 0.25, 0.002);
    EXPECT_FALSE(after.criteria().knows_other(8));
    EXPECT_TRUE(std::ranges::equal(
        after.worths(), before.worths(), [](float a, float b) { return (a == 1) == (b == 1); }));
    after.begin_epoch(1);
    EXPECT_EQ(after.size(), before.size()) << "it has had that epoch";
    WireReader cut{out.view().first(out.size() / 2)};
    EXPECT_FALSE(after.read(cut));
}

TEST(SampleBuckets, RejectsASnapshotWithABadLoadTime) {
    SampleBuckets before = make();
    teach(before);
    WireWriter out;
    before.write(out);
    auto bytes = std::move(out).take();
    // In the snapshot, the load time (a double) follows the epoch, the epochs without progress and
    // the bottleneck. Overwrites it with a NaN.
    std::fill_n(bytes.begin() + 8 + 4 + 1, 8, std::byte{0xFF});
    WireReader in{bytes};
    EXPECT_FALSE(make().read(in));
}

// A redundancy group stays the same after a resume, so the next epoch reads its next member.
TEST(SampleBuckets, RestoredSnapshotReadsTheNextGroupMember) {
    SampleBuckets before = make(static_cast<double>(Redundancy::kRemove));
    const SampleIndex alike[] = {3, 7, 9};
    const std::uint64_t hashes[] = {0xFF, 0xFE, 0xFF};
    before.on_similarity(alike, hashes);
    teach(before);
    before.begin_epoch(4);
    WireWriter out;
    before.write(out);
    SampleBuckets after = make(static_cast<double>(Redundancy::kRemove));
    WireReader in{out.view()};
    ASSERT_TRUE(after.read(in));
    EXPECT_EQ(after.waiting(), before.waiting());
    for (std::uint64_t epoch = 4; epoch < 7; ++epoch) {
        before.begin_epoch(epoch);
        after.begin_epoch(epoch);
        for (const SampleIndex sample : alike) {
            EXPECT_EQ(after.contains(sample), before.contains(sample)) << epoch;
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
