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

TEST(ReplicateEviction, EvictsTheSampleWithFewerReadsIfScoresAreEqual) {
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

// Samples 1, 2 and 3 are resident, with rising scores; 7 and 8 have lower scores and are absent.
struct ReplicateEvictionWithReads : testing::Test {
    ReplicateEvictionWithReads() {
        admit(policy, {1, 2, 3});
        policy.on_score(1, 3.0F);
        policy.on_score(2, 3.5F);
        policy.on_score(3, 4.0F);
        policy.on_score(7, 2.5F);
        policy.on_score(8, 2.0F);
    }

    void begin_epoch(const std::vector<sidecar::SampleIndex>& order) {
        left->clear();
        left->add(order);
        policy.refresh();
    }

    void read(sidecar::SampleIndex sample) {
        left->on_read(sample);
        policy.on_read(sample, true);
    }

    std::shared_ptr<sidecar::ReadsLeft> left = std::make_shared<sidecar::ReadsLeft>(10);
    ReplicateEviction policy{10, left};
};

TEST_F(ReplicateEvictionWithReads, SampleThatTheEpochReadsAgainEvictsOneThatItDoesNotRead) {
    begin_epoch({7, 8, 7});
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), ElementsAre(1)) << "7 is read twice";
    EXPECT_THAT(make_room(policy, 8, Bytes{10}), IsEmpty()) << "only the read it is fetched for";
}

TEST_F(ReplicateEvictionWithReads, KeepsResidentsUntilTheirLastReadOfTheEpoch) {
    begin_epoch({1, 7, 7, 1, 3});
    policy.on_score(9, 5.0F);
    EXPECT_THAT(make_room(policy, 9, Bytes{10}), ElementsAre(2)) << "not 1, which scores less";
    EXPECT_THAT(make_room(policy, 7, Bytes{11}), IsEmpty()) << "1 and 3 will be read";
    read(1);
    EXPECT_THAT(make_room(policy, 7, Bytes{10}), ElementsAre(2)) << "1 has another read";
    read(1);
    EXPECT_THAT(make_room(policy, 7, Bytes{20}), ElementsAre(1, 2));
}

TEST_F(ReplicateEvictionWithReads, AdmitsAndShrinksByTheReadsLeft) {
    begin_epoch({1, 8});
    admit(policy, {8});
    EXPECT_THAT(shrink(policy, Bytes{21}), ElementsAre(2, 3, 8));
    policy.on_score(8, 2.1F);
    EXPECT_THAT(shrink(policy, Bytes{21}), ElementsAre(2, 3, 8)) << "a new score keeps the reads";
}

TEST_F(ReplicateEvictionWithReads, ForgetsTheReadsOfThePreviousEpoch) {
    begin_epoch({1});
    begin_epoch({3});
    EXPECT_THAT(shrink(policy, Bytes{20}), ElementsAre(1, 2));
}

TEST_F(ReplicateEvictionWithReads, AcceptsSampleNumbersBeyondThoseOfItsTable) {
    admit(policy, {100});
    EXPECT_THAT(shrink(policy, Bytes{10}), ElementsAre(100));
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
