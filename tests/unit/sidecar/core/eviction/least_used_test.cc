#include "sidecar/core/eviction/least_used.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::test {
namespace {

using sidecar::Lru;
using sidecar::SampleIndex;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Lru, EvictsTheSampleReadLongestAgo) {
    Lru policy;
    admit(policy, {4, 1, 3});
    policy.on_read(4, true);
    EXPECT_THAT(make_room(policy, 9, Bytes{10}), ElementsAre(1));
    EXPECT_THAT(make_room(policy, 9, Bytes{11}), ElementsAre(1, 3));
    policy.on_gone(1);
    EXPECT_THAT(shrink(policy, Bytes{20}), ElementsAre(3, 4));
}

TEST(Lru, NonEvictableSamplesBecomeTheMostRecentlyReadOnes) {
    Lru policy;
    admit(policy, {1, 2, 3});
    EXPECT_THAT(make_room(policy, 9, Bytes{10}, {1}), ElementsAre(2));
    EXPECT_THAT(make_room(policy, 9, Bytes{30}), ElementsAre(2, 3, 1));
}

TEST(Lru, MakesNoRoomIfNoSampleMayGo) {
    Lru policy;
    admit(policy, {1, 2});
    EXPECT_THAT(make_room(policy, 9, Bytes{10}, {1, 2}), IsEmpty());
    EXPECT_THAT(make_room(policy, 9, Bytes{20}, {2}), IsEmpty());
}

TEST(Lru, ReadsOfAbsentSamplesChangeNothing) {
    Lru policy;
    admit(policy, {1});
    policy.on_read(0, false);
    policy.on_read(77, false);
    EXPECT_THAT(make_room(policy, 9, Bytes{10}), ElementsAre(1));
}

// Compares with a list in the order of reads.
TEST(Lru, ChoosesTheSameVictimsAsAPlainList) {
    Prng prng{seed()};
    Lru policy;
    std::vector<SampleIndex> by_age;
    for (int event = 0; event < 20000; ++event) {
        const auto sample = static_cast<SampleIndex>(prng.below(60));
        const auto found = std::ranges::find(by_age, sample);
        if (found != by_age.end()) {
            by_age.erase(found);
            by_age.push_back(sample);
        } else {
            if (by_age.size() == 40) {
                ASSERT_THAT(make_room(policy, sample, Bytes{1}), ElementsAre(by_age.front()));
                policy.on_gone(by_age.front());
                by_age.erase(by_age.begin());
            }
            by_age.push_back(sample);
            policy.on_resident(sample, Bytes{1});
        }
        policy.on_read(sample, true);
    }
}

}  // namespace
}  // namespace stoker::test
