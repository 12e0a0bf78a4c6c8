#include <algorithm>
#include <map>

#include <gmock/gmock.h>

#include "common/base/prng.h"
#include "sidecar/core/eviction/least_used.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::test {
namespace {

using sidecar::Lfu;
using sidecar::SampleIndex;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Lfu, EvictsOnlyForSamplesReadMoreOften) {
    Lfu policy;
    admit(policy, {1, 2});
    policy.on_read(1, false);
    policy.on_read(2, false);
    policy.on_read(9, false);
    EXPECT_THAT(make_room(policy, 9, Bytes{10}), IsEmpty());  // an equal count does not suffice
    policy.on_read(9, false);
    EXPECT_THAT(make_room(policy, 9, Bytes{10}), ElementsAre(1));
    policy.on_read(1, true);
    EXPECT_THAT(make_room(policy, 9, Bytes{10}), ElementsAre(2));
}

TEST(Lfu, RemembersHowOftenAnAbsentSampleWasRead) {
    Lfu policy;
    admit(policy, {1});
    policy.on_read(1, false);
    policy.on_read(1, true);
    policy.on_gone(1);
    admit(policy, {2});
    policy.on_read(2, false);
    EXPECT_THAT(make_room(policy, 1, Bytes{10}), ElementsAre(2));
}

TEST(Lfu, ShrinkEvictsTheLeastReadFirst) {
    Lfu policy;
    admit(policy, {1, 2, 3});
    for (const SampleIndex sample : {3, 1, 3, 3, 2}) {
        policy.on_read(sample, true);
    }
    EXPECT_THAT(shrink(policy, Bytes{30}), ElementsAre(1, 2, 3));
}

// Compares with counts in a map, whose least is found by a full search.
TEST(Lfu, ChoosesTheSameVictimsAsAFullSearch) {
    Prng prng{seed()};
    Lfu policy;
    std::map<SampleIndex, int> reads;
    std::map<SampleIndex, int> residents;  // → time of the last read
    for (int now = 1; now < 20000; ++now) {
        const auto sample = static_cast<SampleIndex>(prng.below(10) * prng.below(10));
        if (!residents.contains(sample)) {
            const auto least = std::ranges::min_element(residents, {}, [&](const auto& entry) {
                return std::pair{reads[entry.first], entry.second};
            });
            if (residents.size() == 20 && reads[least->first] < reads[sample]) {
                ASSERT_THAT(make_room(policy, sample, Bytes{1}), ElementsAre(least->first));
                policy.on_gone(least->first);
                residents.erase(least);
            } else if (residents.size() == 20) {
                ASSERT_THAT(make_room(policy, sample, Bytes{1}), IsEmpty());
            }
            if (residents.size() < 20) {
                policy.on_resident(sample, Bytes{1});
                residents[sample] = now;
            }
        }
        policy.on_read(sample, false);
        ++reads[sample];
        if (residents.contains(sample)) {
            residents[sample] = now;
        }
    }
}

}  // namespace
}  // namespace stoker::test
