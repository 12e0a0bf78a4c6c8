#include "sidecar/core/eviction/replicate_eviction.h"

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::test {
namespace {

using sidecar::ReplicateEviction;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ReplicateEviction, DisplacesTheSmallestScoreOnlyForALargerOne) {
    ReplicateEviction policy;
    admit(policy, {1, 2, 3});
    policy.on_score(1, 3.0F);
    policy.on_score(2, 2.5F);
    policy.on_score(3, 4.0F);
    policy.on_score(7, 2.4F);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), IsEmpty());
    policy.on_score(7, 2.6F);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), ElementsAre(2));
    EXPECT_THAT(make_room(policy, 7, Bytes{11}), IsEmpty()) << "two would have to go for one";
}

TEST(ReplicateEviction, ComparesReadsBetweenEqualScores) {
    ReplicateEviction policy;
    admit(policy, {1, 2});
    for (const sidecar::SampleIndex sample : {1U, 2U, 7U}) {
        policy.on_score(sample, 3.0F);
    }
    policy.on_read(1, true);
    policy.on_read(1, true);
    policy.on_read(2, true);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), IsEmpty());
    policy.on_read(7, false);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), IsEmpty()) << "equal keys stay";
    policy.on_read(7, false);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), ElementsAre(2));
}

TEST(ReplicateEviction, RemembersScoresOfEvictedSamples) {
    ReplicateEviction policy;
    admit(policy, {1, 2});
    policy.on_score(1, 4.0F);
    policy.on_score(2, 3.0F);
    policy.on_gone(1);
    EXPECT_THAT(make_room(policy, 1, Bytes{10}), ElementsAre(2));
}

TEST(ReplicateEviction, SkipsNonEvictableResidents) {
    ReplicateEviction policy;
    admit(policy, {1, 2});
    policy.on_score(1, 1.0F);
    policy.on_score(2, 2.0F);
    policy.on_score(7, 3.0F);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}, {1}), ElementsAre(2));
}

TEST(ReplicateEviction, UsesScoresFromBeforeAdmission) {
    ReplicateEviction policy;
    policy.on_score(1, 3.0F);
    policy.on_score(2, 1.0F);
    policy.on_score(3, 2.0F);
    admit(policy, {1, 2, 3});
    EXPECT_THAT(shrink(policy, Bytes{11}), ElementsAre(2, 3));
}

TEST(ReplicateEviction, ShrinkEvictsTheSmallestScores) {
    ReplicateEviction policy;
    admit(policy, {1, 2, 3});
    policy.on_score(1, 3.0F);
    policy.on_score(2, 1.0F);
    policy.on_score(3, 2.0F);
    EXPECT_THAT(shrink(policy, Bytes{11}), ElementsAre(2, 3));
}

}  // namespace
}  // namespace stoker::test
