#include "sidecar/core/sampling/sample_buckets.h"

#include <algorithm>

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

TEST(SampleBuckets, RemovedCopiesAreInNeitherBucket) {
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
}

TEST(SampleBuckets, SurvivesARoundTripThroughBytes) {
    SampleBuckets before = make();
    teach(before);
    before.on_quality(0.5);
    before.on_waiting(0);
    before.begin_epoch(1);
    WireWriter out;
    before.write(out);
    SampleBuckets after = make();
    WireReader in{out.view()};
    ASSERT_TRUE(after.read(in));
    EXPECT_EQ(in.left(), 0U);
    EXPECT_EQ(after.waiting(), before.waiting());
    EXPECT_EQ(after.criteria().bottleneck(), Bottleneck::kCompute);
    EXPECT_TRUE(std::ranges::equal(
        after.worths(), before.worths(), [](float a, float b) { return (a == 1) == (b == 1); }));
    after.begin_epoch(1);
    EXPECT_EQ(after.size(), before.size()) << "it has had that epoch";
    WireReader cut{out.view().first(out.size() / 2)};
    EXPECT_FALSE(after.read(cut));
}

}  // namespace
}  // namespace stoker::sidecar
