#include <chrono>

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

TEST_F(FetchEngineTest, FetchesADemandedSampleAndAnswersWhenItIsStored) {
    make();
    const auto asked = fetch({3});
    EXPECT_THAT(asked.fetches, ElementsAre(resident(3)));
    EXPECT_THAT(asked.replies, IsEmpty());
    EXPECT_THAT(stored(3).replies, ElementsAre(ready(1)));
    EXPECT_THAT(fetch({3, 3}).replies, SizeIs(0));  // suspected damaged: it was just ready
}

TEST_F(FetchEngineTest, SendsOneOriginRequestForSeveralClients) {
    make();
    engine->on_connect(kWorker, kStream);
    EXPECT_THAT(fetch({3}).fetches, SizeIs(1));
    EXPECT_THAT(fetch({3}, kWorker).fetches, IsEmpty());
    EXPECT_THAT(stored(3).replies, UnorderedElementsAre(ready(1), ready(2, 1, kWorker)));
}

TEST_F(FetchEngineTest, AnswersAnEmptyFetchAtOnce) {
    make();
    EXPECT_THAT(fetch({}).replies, ElementsAre(ready(1, 0)));
}

TEST_F(FetchEngineTest, DropsAConsumedWindowSample) {
    make(Bytes::zero());
    plan({0, 1});
    stored(0);
    EXPECT_THAT(consume({0}).drops, ElementsAre(0));
    EXPECT_THAT(consume({0}).drops, IsEmpty());
}

TEST_F(FetchEngineTest, KeepsAWindowSampleUntilEveryStreamHasReadIt) {
    make(Bytes::zero());
    engine->on_connect(kWorker, StreamId{8});
    plan({0});
    engine->on_plan(kWorker, StreamPlan::make(4, {1, 0}, 0, 10).value(), kNow);
    stored(0);
    EXPECT_THAT(consume({0}).drops, IsEmpty());
    EXPECT_THAT(engine->on_consumed(kWorker, 4, {0}, kNow).drops, ElementsAre(0));
}

TEST_F(FetchEngineTest, KeepsARequestedWindowSampleUntilTheClientsNextRequest) {
    make(Bytes::zero());
    fetch({0});
    EXPECT_THAT(stored(0).drops, IsEmpty());
    EXPECT_THAT(fetch({1}).drops, ElementsAre(0));
}

TEST_F(FetchEngineTest, KeepsARequestedWindowSampleUntilItsConnectionEnds) {
    make(Bytes::zero());
    fetch({0});
    stored(0);
    EXPECT_THAT(engine->on_disconnect(kTrainer, kNow).drops, ElementsAre(0));
}

TEST_F(FetchEngineTest, RetriesAFailedPrefetchUntilDemanded) {
    make({.max_in_flight = 1}, Bytes::unlimited());
    plan({0});
    EXPECT_THAT(engine->on_fetch_failed(0, kDown, kNow).fetches, IsEmpty());
    const TimePoint later = engine->next_deadline(kNow).value();
    EXPECT_THAT(engine->tick(later).fetches, ElementsAre(resident(0)));
    EXPECT_THAT(fetch({0}).replies, IsEmpty());
    const auto failed = engine->on_fetch_failed(0, kDown, later);
    ASSERT_THAT(failed.replies, SizeIs(1));
    EXPECT_THAT(failed.replies[0].outcomes, ElementsAre(FetchOutcome::kOriginError));
    EXPECT_EQ(failed.replies[0].message, kDown.message);
    EXPECT_EQ(engine->admission().origin_error, kDown.message);
    fetch({0});
    stored(0);
    EXPECT_EQ(engine->admission().origin_error, "");
}

TEST_F(FetchEngineTest, DemandAfterAFailureRetriesTheOrigin) {
    make();
    fetch({0});
    engine->on_fetch_failed(0, kDown, kNow);
    EXPECT_THAT(fetch({0}).fetches, ElementsAre(resident(0)));
}

TEST_F(FetchEngineTest, AnswersForAMissingObjectWithoutReadingTheOrigin) {
    make();
    plan({0});
    engine->on_fetch_failed(0, kGone, kNow);
    const auto asked = fetch({0});
    EXPECT_THAT(asked.fetches, IsEmpty());
    ASSERT_THAT(asked.replies, SizeIs(1));
    EXPECT_EQ(asked.replies[0].message, kGone.message);
}

TEST_F(FetchEngineTest, ReadsAnObjectThatCameBackOnDemand) {
    make();
    plan({0});
    engine->on_fetch_failed(0, kGone, kNow);
    const TimePoint later = kNow + Refusals::kFirst;
    EXPECT_THAT(engine->on_fetch(kTrainer, 8, {0}, later - seconds{1}).fetches, IsEmpty());
    EXPECT_THAT(engine->tick(later).fetches, IsEmpty()) << "nobody waits for it";
    EXPECT_THAT(engine->on_fetch(kTrainer, 9, {0}, later).fetches, ElementsAre(resident(0)));
    EXPECT_THAT(engine->on_stored(0, later).replies, ElementsAre(ready(9)));
}

TEST(Refusals, ForgetsTheOldestBeyondTheLimit) {
    Refusals refusals;
    for (SampleIndex sample = 0; sample < Refusals::kSamplesMax; ++sample) {
        ASSERT_EQ(refusals.add(sample, 1, kGone.message, kNow - seconds{sample}), std::nullopt);
    }
    EXPECT_EQ(
        refusals.add(Refusals::kSamplesMax, 1, kGone.message, kNow), Refusals::kSamplesMax - 1);
    EXPECT_EQ(refusals.message(Refusals::kSamplesMax), kGone.message);
}

TEST_F(FetchEngineTest, ReadsAMissingObjectLessAndLessOften) {
    make();
    TimePoint now = kNow;
    for (const int wait_s : {30, 60, 120, 240, 480, 600, 600, 600}) {
        ASSERT_THAT(engine->on_fetch(kTrainer, ++request, {0}, now).fetches, SizeIs(1));
        engine->on_fetch_failed(0, kGone, now);
        now += seconds{wait_s};
        EXPECT_THAT(
            engine->on_fetch(kTrainer, ++request, {0}, now - seconds{1}).fetches, IsEmpty());
    }
    ASSERT_THAT(engine->on_fetch(kTrainer, ++request, {0}, now).fetches, SizeIs(1));
    engine->on_stored(0, now);
    EXPECT_EQ(engine->sample(0).refusals, 0) << "a success begins anew";
}

TEST_F(FetchEngineTest, ClientReadsAnObjectTooLargeForTheMemory) {
    make({.max_in_flight = 1}, Bytes::unlimited());
    plan({0, 1});
    fetch({0});
    const auto failed =
        engine->on_fetch_failed(0, {ErrorCode::kResourceExhausted, "too large"}, kNow);
    ASSERT_THAT(failed.replies, SizeIs(1));
    EXPECT_THAT(failed.replies[0].outcomes, ElementsAre(FetchOutcome::kReadAtOrigin));
    EXPECT_THAT(failed.fetches, ElementsAre(resident(1)));
}

TEST_F(FetchEngineTest, FullDiskSendsDemandsToTheOriginUntilRetried) {
    make();
    fetch({0});
    const auto failed = engine->on_store_failed(0, kDiskFull, kNow);
    ASSERT_THAT(failed.replies, SizeIs(1));
    EXPECT_THAT(failed.replies[0].outcomes, ElementsAre(FetchOutcome::kReadAtOrigin));
    EXPECT_FALSE(engine->admission().is_admitting());

    EXPECT_THAT(fetch({1}).fetches, ElementsAre(window(1)));  // window bytes become free again
    engine->on_store_failed(1, kDiskFull, kNow);
    EXPECT_THAT(fetch({2}).replies, SizeIs(1));
    const TimePoint later = kNow + seconds{2};
    EXPECT_THAT(engine->on_fetch(kTrainer, 9, {3}, later).fetches, ElementsAre(resident(3)));
    engine->on_stored(3, later);
    EXPECT_TRUE(engine->admission().is_admitting())
        << "no window sample has to come to find that out";
    EXPECT_EQ(engine->admission().store_error, "");
    EXPECT_THAT(engine->on_fetch(kTrainer, 10, {4}, later).fetches, ElementsAre(resident(4)));
}

TEST_F(FetchEngineTest, VerifiesARepeatedlyDemandedSampleAndRefetchesADamagedOne) {
    make();
    fetch({0});
    stored(0);
    const auto again = fetch({0});
    EXPECT_THAT(again.verifies, ElementsAre(0));
    const auto damaged = engine->on_verified(0, false, kNow);
    EXPECT_THAT(damaged.fetches, ElementsAre(resident(0)));
    EXPECT_THAT(stored(0).replies, ElementsAre(ready(2)));
    EXPECT_EQ(engine->counters().corrupt_samples, 1U);
}

TEST_F(FetchEngineTest, IntactSampleIsReadyAfterVerification) {
    make();
    fetch({0});
    stored(0);
    fetch({0});
    EXPECT_THAT(engine->on_verified(0, true, kNow).replies, ElementsAre(ready(2)));
}

TEST_F(FetchEngineTest, NewPlanKeepsItsSamplesAndDropsOtherSamplesOfTheOldPlan) {
    make({.max_in_flight = 2}, Bytes::zero());
    plan({0, 1}, 1);
    stored(0);
    stored(1);
    EXPECT_THAT(plan({1, 2}, 2).drops, ElementsAre(0));
}

TEST_F(FetchEngineTest, ConsumedSamplesOfAnotherEpochChangeNothing) {
    make(Bytes::zero());
    plan({0}, 2);
    stored(0);
    EXPECT_THAT(consume({0}, 1).drops, IsEmpty());
    EXPECT_THAT(consume({0}, 2).drops, ElementsAre(0));
}

TEST_F(FetchEngineTest, FirstReadCountsAsFetchedAndLaterReadsAsHits) {
    make();
    plan({1, 2});
    fetch({3});
    stored(1);
    stored(2);
    stored(3);
    ReadCounts counts;
    engine->on_consumed(kTrainer, 1, {1, 3, 9}, kNow, &counts);
    const ReadCounts cold{0, {}, 2, Bytes{2 * kPayload}};
    EXPECT_EQ(counts, cold) << "9 was never here";
    engine->on_connect(kWorker, std::nullopt);
    engine->on_consumed(kWorker, 1, {1, 2}, kNow, &counts);
    EXPECT_EQ(counts, (ReadCounts{1, Bytes{kPayload}, 3, Bytes{3 * kPayload}}))
        << "2 came for the trainer, and is read first by somebody else";
}

// An I/O thread publishes the sample and a trainer reads it before the engine learns that it is
// stored.
TEST_F(FetchEngineTest, CountsAReadReportedBeforeItsFetch) {
    make();
    plan({1});
    ReadCounts counts;
    engine->on_consumed(kTrainer, 1, {1}, kNow, &counts);
    EXPECT_EQ(counts, (ReadCounts{0, {}, 1, Bytes{kPayload}}));
    stored(1);
    engine->on_consumed(kTrainer, 1, {1}, kNow, &counts);
    EXPECT_EQ(counts, (ReadCounts{1, Bytes{kPayload}, 1, Bytes{kPayload}}));
}

TEST_F(FetchEngineTest, SampleThatWasStoredBeforeTheStartIsAHit) {
    engine.emplace(dataset.manifest(), EngineLimits{}, EngineGrant{gib(1), std::nullopt});
    engine->adopt(4, domain::SegmentClass::kResident);
    engine->open(kNow);
    engine->on_connect(kTrainer, kStream);
    ReadCounts counts;
    engine->on_consumed(kTrainer, 1, {4}, kNow, &counts);
    EXPECT_EQ(counts, (ReadCounts{1, Bytes{kPayload}, 0, {}}));
}

TEST_F(FetchEngineTest, ReadResidentLeavesThePageCacheIfThatIsSmall) {
    make({.page_cache = Bytes::zero()}, Bytes::unlimited());
    plan({0});
    stored(0);
    EXPECT_THAT(consume({0}).wont_need, ElementsAre(0));
}

}  // namespace
}  // namespace stoker::sidecar
