#include "sidecar/core/eviction/never_evict.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::test {
namespace {

using sidecar::NeverEvict;
using sidecar::SampleIndex;
using testing::IsEmpty;

using Samples = std::vector<SampleIndex>;

// The first `count` samples, of ten bytes each.
Samples admit_first(NeverEvict& policy, std::uint32_t count) {
    Samples samples;
    for (SampleIndex sample = 0; sample < count; ++sample) {
        admit(policy, {sample});
        samples.push_back(sample);
    }
    return samples;
}

TEST(NeverEvict, EvictsNoResident) {
    NeverEvict policy;
    admit(policy, {0, 1, 2});
    EXPECT_THAT(make_room(policy, 7, Bytes{1}), IsEmpty());
}

TEST(NeverEvict, ShrinksInAFixedOrderForAnyArrivalOrder) {
    NeverEvict one;
    NeverEvict other;
    admit(one, {0, 1, 2, 3, 4, 5, 6, 7});
    admit(other, {7, 3, 5, 1, 0, 2, 4, 6});
    const auto victims = shrink(one, Bytes{35});
    EXPECT_THAT(victims, testing::SizeIs(4));
    EXPECT_EQ(shrink(other, Bytes{35}), victims);
}

// The window takes the residents' bytes a few at a time when it grows. That must evict the same
// samples in the same order as one large step.
TEST(NeverEvict, ShrinksInManyStepsAsInOne) {
    constexpr std::uint32_t kCount = 1000;
    NeverEvict at_once;
    NeverEvict in_steps;
    const Samples all = admit_first(at_once, kCount);
    admit_first(in_steps, kCount);
    const Samples expected = shrink(at_once, Bytes{10 * kCount});
    EXPECT_THAT(expected, testing::UnorderedElementsAreArray(all));
    Samples gone;
    while (gone.size() < kCount) {
        for (const SampleIndex victim : shrink(in_steps, Bytes{70})) {
            in_steps.on_gone(victim);
            gone.push_back(victim);
        }
    }
    EXPECT_EQ(gone, expected);
    EXPECT_THAT(shrink(in_steps, Bytes{1}), IsEmpty());
}

// Neighbours in a listing often have one class, and every n-th sample belongs to one rank.
TEST(NeverEvict, ShrinkEvictsEvenlyAcrossTheListing) {
    constexpr std::uint32_t kCount = 100'000;
    NeverEvict policy;
    admit_first(policy, kCount);
    std::vector<double> by_place(10);
    std::vector<double> by_stride(10);
    for (const SampleIndex victim : shrink(policy, Bytes{10 * kCount / 4})) {
        ++by_place[victim / (kCount / 10)];
        ++by_stride[victim % 10];
    }
    constexpr double kShare = kCount / 40.0;
    EXPECT_THAT(by_place, testing::Each(testing::DoubleNear(kShare, .06 * kShare)));
    EXPECT_THAT(by_stride, testing::Each(testing::DoubleNear(kShare, .06 * kShare)));
}

TEST(NeverEvict, ShrinkFindsSamplesAdmittedAgainAfterEviction) {
    NeverEvict policy;
    admit(policy, {0, 1, 2, 3});
    for (const SampleIndex victim : shrink(policy, Bytes{40})) {
        policy.on_gone(victim);
    }
    admit(policy, {2});
    EXPECT_THAT(shrink(policy, Bytes{1}), testing::ElementsAre(2));
}

}  // namespace
}  // namespace stoker::test
