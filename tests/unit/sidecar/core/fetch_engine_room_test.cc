#include <memory>

#include <gmock/gmock.h>

#include "sidecar/core/eviction/least_used.h"
#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class FetchEngineRoom : public FetchEngineTest {
protected:
    // LRU with room for two residents, after reads of samples 0 and 1.
    void make_lru(Bytes window = kRecord * 2) {
        make({.window = window}, kRecord * 2, std::make_unique<Lru>());
        read_alone(0);
        read_alone(1);
    }

    // A read without a plan: fetch, then report it as consumed.
    Effects read_alone(SampleIndex sample) {
        Effects asked = fetch({sample});
        if (engine->sample(sample).state == SampleState::kFetching) {
            stored(sample);
        }
        engine->on_consumed(kTrainer, 0, {sample}, kNow);
        return asked;
    }
};

TEST_F(FetchEngineRoom, DemandedSampleReplacesThePolicysVictim) {
    make_lru();
    const auto asked = fetch({5});
    EXPECT_THAT(asked.drops, ElementsAre(0));
    EXPECT_THAT(asked.fetches, ElementsAre(resident(5)));
    EXPECT_EQ(engine->account().resident, kRecord * 2);
    EXPECT_EQ(engine->counters().evicted_resident_samples, 1U);
}

TEST_F(FetchEngineRoom, HitCountsAsARead) {
    make_lru();
    engine->on_consumed(kTrainer, 0, {0}, kNow);
    EXPECT_THAT(fetch({5}).drops, ElementsAre(1));
}

TEST_F(FetchEngineRoom, KeepsHeldResidentsAndServesOthersThroughTheWindow) {
    make_lru();
    fetch({0, 1});  // both were stored: held now
    const auto asked = engine->on_fetch(kTrainer, 99, {}, kNow);
    EXPECT_THAT(asked.drops, IsEmpty());
    engine->on_connect(kWorker, std::nullopt);
    fetch({0, 1});
    const auto other = fetch({5}, kWorker);
    EXPECT_THAT(other.drops, IsEmpty());
    EXPECT_THAT(other.fetches, ElementsAre(window(5)));
}

TEST_F(FetchEngineRoom, PrefetchReplacesASampleNotNeededSoon) {
    make_lru();
    EXPECT_THAT(plan({2, 1, 3}).fetches, ElementsAre(resident(2), window(3)));
    EXPECT_EQ(engine->sample(1).state, SampleState::kStored) << "the plan needs it soon";
    EXPECT_EQ(engine->sample(0).state, SampleState::kAbsent);
}

TEST_F(FetchEngineRoom, SampleLargerThanTheGrantEvictsNothing) {
    make_lru();
    engine->on_grant({kRecord, std::nullopt}, kNow);
    const auto shrunk = engine->account().resident;
    EXPECT_EQ(shrunk, kRecord);
    engine->on_grant({kRecord - Bytes{1}, std::nullopt}, kNow);
    const auto asked = fetch({5});
    EXPECT_THAT(asked.drops, IsEmpty());
    EXPECT_THAT(asked.fetches, ElementsAre(window(5)));
}

TEST_F(FetchEngineRoom, ExpiredGrantEvictsNothing) {
    make_lru();
    engine->on_grant({kRecord * 2, kNow}, kNow);
    const auto asked = fetch({5});
    EXPECT_THAT(asked.drops, IsEmpty());
    EXPECT_THAT(asked.fetches, ElementsAre(window(5)));
}

TEST_F(FetchEngineRoom, ShrinkingGrantEvictsTheLeastRecentlyReadFirst) {
    make_lru();
    engine->on_consumed(kTrainer, 0, {0}, kNow);
    fetch({});  // releases the holds
    EXPECT_THAT(engine->on_grant({kRecord, std::nullopt}, kNow).drops, ElementsAre(1));
}

TEST_F(FetchEngineRoom, BypassServesHitsAndFetchesNothing) {
    make_lru();
    engine->on_aside(true, kNow);
    const auto asked = fetch({0, 5});
    EXPECT_THAT(asked.fetches, IsEmpty());
    EXPECT_THAT(asked.drops, IsEmpty());
    ASSERT_EQ(asked.replies.size(), 1U);
    EXPECT_THAT(
        asked.replies[0].outcomes, ElementsAre(FetchOutcome::kReady, FetchOutcome::kReadAtOrigin));
    EXPECT_THAT(plan({5, 6}).fetches, IsEmpty());
    const auto back = engine->on_aside(false, kNow);
    EXPECT_THAT(back.fetches, ElementsAre(resident(5), window(6)));
}

TEST_F(FetchEngineRoom, ReportsFailedFetchesToThePolicy) {
    make({}, kRecord * 2, std::make_unique<Lru>());
    fetch({0});
    engine->on_fetch_failed(0, kDown, kNow);
    fetch({1});
    engine->on_store_failed(1, kDiskFull, kNow);
    EXPECT_EQ(engine->account().resident, Bytes::zero());
    std::vector<SampleIndex> victims;
    engine->eviction().shrink(kRecord, victims);
    EXPECT_THAT(victims, IsEmpty());
}

}  // namespace
}  // namespace stoker::sidecar
