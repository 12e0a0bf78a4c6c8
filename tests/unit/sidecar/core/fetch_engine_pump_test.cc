// Order of fetches, placement of samples, and evictions to make room.
#include <chrono>

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using domain::SegmentClass;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using FetchEnginePump = FetchEngineTest;

TEST_F(FetchEnginePump, PrefetchesInPlanOrderUpToItsSlots) {
    make({.max_in_flight = 3}, Bytes::unlimited());
    EXPECT_THAT(plan({5, 1, 8, 2}).fetches, ElementsAre(resident(5), resident(1), resident(8)));
    EXPECT_THAT(stored(1).fetches, ElementsAre(resident(2)));
}

TEST_F(FetchEnginePump, FollowsAChangedNumberOfSlots) {
    make({.max_in_flight = 2}, Bytes::unlimited());
    EXPECT_THAT(plan({5, 1, 8, 2}).fetches, SizeIs(2));
    engine->set_max_in_flight(3);
    EXPECT_THAT(stored(5).fetches, ElementsAre(resident(8), resident(2)));
    engine->set_max_in_flight(1);
    EXPECT_THAT(fetch({9}).fetches, IsEmpty());
    EXPECT_THAT(stored(1).fetches, IsEmpty());
    EXPECT_THAT(stored(8).fetches, IsEmpty());
    EXPECT_THAT(stored(2).fetches, ElementsAre(resident(9)));
}

TEST_F(FetchEnginePump, FillsTheGrantToTheByteThenTheWindow) {
    make(kRecord * 2);
    EXPECT_THAT(plan({0, 1, 2}).fetches, ElementsAre(resident(0), resident(1), window(2)));
    EXPECT_EQ(engine->account().resident, kRecord * 2);
    EXPECT_EQ(engine->account().window, kRecord);
}

TEST_F(FetchEnginePump, RespectsTheOriginRateLimitUnderDemands) {
    make(EngineLimits{}, Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), std::nullopt, kPayload}, kNow);  // one sample a second
    EXPECT_THAT(fetch({0, 1, 2, 3}).fetches, ElementsAre(resident(0)));
    const auto next = engine->next_deadline(kNow);
    ASSERT_TRUE(next.has_value());
    EXPECT_THAT(engine->tick(*next).fetches, ElementsAre(resident(1)));
    EXPECT_THAT(engine->tick(*next).fetches, IsEmpty());
    EXPECT_THAT(engine->tick(kNow + seconds{2}).fetches, SizeIs(1));
}

TEST_F(FetchEnginePump, OriginRateLimitOutlivesTheGrant) {
    make(EngineLimits{}, Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), kNow + seconds{1}, kPayload}, kNow);
    engine->tick(kNow + seconds{60});
    const auto asked = engine->on_fetch(kTrainer, 9, {0, 1, 2, 3, 4}, kNow + seconds{60});
    EXPECT_THAT(asked.fetches, ElementsAre(window(0), window(1))) << "nothing new is kept";
}

TEST_F(FetchEnginePump, PrefetchesNothingForABypassingStream) {
    make({.max_in_flight = 3}, Bytes::unlimited());
    engine->on_bypass(kTrainer, true, kNow);
    EXPECT_THAT(plan({5, 1, 8, 2}).fetches, IsEmpty());
    EXPECT_THAT(fetch({9}).fetches, ElementsAre(resident(9))) << "a demand is served";
    EXPECT_THAT(
        engine->on_bypass(kTrainer, false, kNow).fetches, ElementsAre(resident(5), resident(1)));
}

TEST_F(FetchEnginePump, EndedConnectionReleasesItsBypass) {
    make({.max_in_flight = 3}, Bytes::unlimited());
    engine->on_connect(kWorker, kStream);
    engine->on_bypass(kWorker, true, kNow);
    engine->on_bypass(kWorker, true, kNow);
    EXPECT_THAT(plan({5, 1}).fetches, IsEmpty());
    EXPECT_THAT(
        engine->on_disconnect(kWorker, kNow).fetches, ElementsAre(resident(5), resident(1)));
}

TEST_F(FetchEnginePump, RefillsTheWindowAsSamplesAreRead) {
    make({.window = kRecord * 2}, Bytes::zero());
    EXPECT_THAT(plan({4, 5, 6, 7}).fetches, ElementsAre(window(4), window(5)));
    EXPECT_THAT(stored(4).fetches, IsEmpty());
    const auto read = consume({4});
    EXPECT_THAT(read.drops, ElementsAre(4));
    EXPECT_THAT(read.fetches, ElementsAre(window(6)));
}

TEST_F(FetchEnginePump, DemandEvictsThePrefetchNeededLast) {
    make({.window = kRecord * 2}, Bytes::zero());
    plan({4, 5, 6, 7});
    stored(4);
    stored(5);
    const auto asked = fetch({9});
    EXPECT_THAT(asked.drops, ElementsAre(5));
    EXPECT_THAT(asked.fetches, ElementsAre(window(9)));
    stored(9);
    EXPECT_THAT(consume({4}).fetches, ElementsAre(window(5)));  // it is still needed
}

TEST_F(FetchEnginePump, DemandWithoutRoomReadsTheOrigin) {
    make({.window = kRecord * 2}, Bytes::zero());
    fetch({0, 1, 2});
    stored(0);
    const auto last = stored(1);
    ASSERT_THAT(last.replies, SizeIs(1));
    EXPECT_THAT(
        last.replies[0].outcomes,
        ElementsAre(FetchOutcome::kReady, FetchOutcome::kReady, FetchOutcome::kReadAtOrigin));
}

TEST_F(FetchEnginePump, ShrunkenGrantDropsTheExcess) {
    make();
    plan({0, 1, 2, 3});
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    const auto shrunk = engine->on_grant({kRecord * 3, std::nullopt}, kNow);
    EXPECT_THAT(shrunk.drops, SizeIs(1));
    EXPECT_EQ(engine->account().resident, kRecord * 3);
    EXPECT_THAT(shrunk.fetches, ElementsAre(window(shrunk.drops.front())));
}

TEST_F(FetchEnginePump, HeldResidentOutlivesItsGrantUntilReleased) {
    make();
    fetch({0});
    stored(0);
    EXPECT_THAT(engine->on_grant({Bytes::zero(), std::nullopt}, kNow).drops, IsEmpty());
    EXPECT_EQ(engine->account().resident, Bytes::zero());
    EXPECT_THAT(fetch({1}).drops, ElementsAre(0));
}

TEST_F(FetchEnginePump, ExpiredGrantServesResidentsAndAdmitsNoMore) {
    make();
    engine->on_grant({Bytes::unlimited(), kNow + seconds{5}}, kNow);
    fetch({0});
    stored(0);
    const TimePoint later = kNow + seconds{5};
    EXPECT_THAT(engine->on_fetch(kTrainer, 9, {1}, later).fetches, ElementsAre(window(1)));
    EXPECT_EQ(engine->account().resident_samples, 1U);
}

TEST_F(FetchEnginePump, AsksForReadaheadOfResidentsThatThePlanReadsNext) {
    make();
    plan({0, 1});
    stored(0);
    stored(1);
    EXPECT_THAT(plan({1, 0}, 2).will_need, ElementsAre(1, 0));
}

TEST_F(FetchEnginePump, StartsWithStoredSamplesAndDropsWindowSamplesThatNoPlanNeeds) {
    engine.emplace(
        dataset.manifest(), EngineLimits{}, EngineGrant{Bytes::unlimited(), std::nullopt});
    engine->adopt(0, SegmentClass::kResident);
    engine->adopt(1, SegmentClass::kWindow);
    engine->adopt(2, SegmentClass::kWindow);
    engine->open(kNow);
    engine->on_connect(kTrainer, kStream);
    EXPECT_THAT(plan({0, 2}).fetches, IsEmpty());
    EXPECT_THAT(engine->tick(engine->next_deadline(kNow).value()).drops, ElementsAre(1));
    EXPECT_THAT(consume({2}).drops, ElementsAre(2));
}

// After a power cut, segments that were unlinked before may exist again (found by tests/world).
TEST_F(FetchEnginePump, AdoptsNoMoreThanTheWindowHolds) {
    const auto opened = [this] {
        engine.emplace(
            dataset.manifest(),
            EngineLimits{.window = kRecord + kRecord},
            EngineGrant{Bytes{}, std::nullopt});
        for (const SampleIndex sample : {0U, 1U, 2U}) {
            engine->adopt(sample, SegmentClass::kWindow);
        }
        return engine->open(kNow);
    }();
    EXPECT_THAT(opened.drops, ElementsAre(0));
    EXPECT_EQ(engine->account().window, kRecord + kRecord);
}

TEST_F(FetchEnginePump, FetchesTheNearestNeedOfAllStreamsFirst) {
    make({.max_in_flight = 4}, Bytes::unlimited());
    engine->on_connect(kWorker, StreamId{8});
    plan({0, 1, 2, 3, 4});
    const auto second = engine->on_plan(kWorker, StreamPlan::make(1, {7, 8}, 0, 10).value(), kNow);
    EXPECT_THAT(second.fetches, IsEmpty());
    EXPECT_THAT(stored(0).fetches, ElementsAre(resident(7)));
    EXPECT_THAT(stored(1).fetches, ElementsAre(resident(8)));
    EXPECT_THAT(stored(2).fetches, ElementsAre(resident(4)));
}

TEST_F(FetchEnginePump, PlanExtensionFetchesAddedAndDropsRemovedSamples) {
    make({.max_in_flight = 2}, Bytes{});
    EXPECT_THAT(plan({0, 1, 2}).fetches, ElementsAre(window(0), window(1)));
    stored(0);
    stored(1);
    EXPECT_EQ(engine->plan_size(kTrainer, 1), 3U);
    const auto extended = engine->extend_plan(kTrainer, {1, {3, 4}}, kNow);
    EXPECT_THAT(extended.fetches, ElementsAre(window(3)));
    EXPECT_THAT(extended.drops, ElementsAre(1));
    EXPECT_EQ(engine->plan_size(kTrainer, 1), 3U);
    EXPECT_THAT(stored(2).drops, ElementsAre(2)) << "nobody needs it any more";
    EXPECT_THAT(consume({0}).drops, ElementsAre(0));
}

TEST_F(FetchEnginePump, RateLimitDelaysPrefetchesButNotDemands) {
    make();
    engine->on_grant({Bytes::unlimited(), std::nullopt, 2 * kPayload}, kNow);
    const TimePoint later = kNow + seconds{1};
    const auto planned =
        engine->on_plan(kTrainer, StreamPlan::make(1, {0, 1, 2, 3}, 0, 10).value(), later);
    EXPECT_THAT(planned.fetches, ElementsAre(resident(0), resident(1)));
    EXPECT_THAT(engine->on_fetch(kTrainer, 1, {9}, later).fetches, ElementsAre(resident(9)));
    const TimePoint next = engine->next_deadline(later).value();
    EXPECT_GT(next, later + std::chrono::milliseconds{400});
    EXPECT_THAT(engine->tick(next).fetches, ElementsAre(resident(2)));
}

}  // namespace
}  // namespace stoker::sidecar
