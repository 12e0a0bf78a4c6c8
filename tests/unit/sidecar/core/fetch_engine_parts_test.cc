// Samples of more than half of the memory, which are fetched in parts.
#include <gmock/gmock.h>

#include "sidecar/core/eviction/least_used.h"
#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kLarge = 10 * kPayload;
constexpr TimePoint kFull = kNow + std::chrono::seconds{1};  // the token buckets are full
constexpr EngineLimits kLimits{.memory = Bytes{4 * kPayload}, .max_in_flight = 16};

StartFetch in_parts(StartFetch fetch) {
    fetch.in_parts = true;
    return fetch;
}

// Samples 0 to 4 are larger than the memory, 5 to 9 are a quarter of it.
class FetchEngineParts : public FetchEngineTest {
protected:
    FetchEngineParts() {
        std::vector<std::uint64_t> sizes(10, kPayload);
        std::fill_n(sizes.begin(), 5, kLarge);
        dataset = test::Dataset{sizes};
    }
};

TEST_F(FetchEngineParts, ASampleOfMoreThanHalfOfTheMemoryComesInParts) {
    make({.memory = Bytes{2 * kPayload}}, Bytes::unlimited());
    EXPECT_THAT(fetch({5}).fetches, ElementsAre(resident(5)));
    make({.memory = Bytes{2 * kPayload - 2}}, Bytes::unlimited());
    EXPECT_THAT(fetch({5}).fetches, ElementsAre(in_parts(resident(5))));
    EXPECT_THAT(stored(5).replies, SizeIs(1));
}

TEST_F(FetchEngineParts, ReservesTheWholeSampleInTheGrant) {
    make(kLimits, Bytes{kLarge + kLarge / 2});
    EXPECT_THAT(fetch({0}).fetches, ElementsAre(in_parts(resident(0))));
    EXPECT_EQ(engine->account().resident, Bytes{domain::record_bytes(kLarge)});
    EXPECT_EQ(engine->account().in_flight, Bytes::zero());
    engine->on_fetch_failed(0, kDown, kNow);
    EXPECT_EQ(engine->account(), ByteAccount{});
}

TEST_F(FetchEngineParts, WithoutRoomReadsTheOrigin) {
    make({.window = kRecord * 3, .memory = Bytes{4 * kPayload}}, Bytes{kLarge});
    const auto asked = fetch({0});
    EXPECT_THAT(asked.fetches, IsEmpty());
    ASSERT_THAT(asked.replies, SizeIs(1));
    EXPECT_THAT(asked.replies[0].outcomes, ElementsAre(FetchOutcome::kReadAtOrigin));
}

TEST_F(FetchEngineParts, TakeHalfOfTheMemoryTogether) {
    make(kLimits, Bytes::unlimited());
    EXPECT_THAT(fetch({0, 1}).fetches, SizeIs(2));
    EXPECT_THAT(fetch({5, 6, 7}).fetches, ElementsAre(resident(5), resident(6)));
    EXPECT_THAT(stored(0).fetches, IsEmpty());
    EXPECT_THAT(stored(5).fetches, ElementsAre(resident(7)));
    EXPECT_THAT(engine->parted(), ElementsAre(1));
}

TEST_F(FetchEngineParts, TwoAreFetchedAtATimeAndSmallSamplesPassTheOthers) {
    make(kLimits, Bytes::unlimited());
    EXPECT_THAT(
        fetch({0, 1, 2, 3, 5}).fetches,
        ElementsAre(in_parts(resident(0)), in_parts(resident(1)), resident(5)));
    EXPECT_EQ(engine->account().resident, Bytes{2 * domain::record_bytes(kLarge)} + kRecord);
    EXPECT_THAT(stored(1).fetches, ElementsAre(in_parts(resident(2))));
    EXPECT_THAT(stored(0).fetches, ElementsAre(in_parts(resident(3))));
}

TEST_F(FetchEngineParts, TakeNoSlotsOfSmallSamples) {
    EngineLimits limits = kLimits;
    limits.max_in_flight = 1;
    make(limits, Bytes::unlimited());
    EXPECT_THAT(fetch({0, 1, 5}).fetches, SizeIs(3));
}

TEST_F(FetchEngineParts, ADemandHasAPlaceBesideWhatIsFetchedAhead) {
    make(kLimits, Bytes::unlimited());
    EXPECT_THAT(plan({0, 1, 2, 3}).fetches, SizeIs(2));
    EXPECT_FALSE(engine->is_urgent(0));
    EXPECT_THAT(fetch({3}).fetches, ElementsAre(in_parts(resident(3))));
    EXPECT_TRUE(engine->is_urgent(3));
    EXPECT_THAT(fetch({2}, kTrainer).fetches, IsEmpty()) << "it waits for the first demand";
    EXPECT_THAT(stored(3).fetches, ElementsAre(in_parts(resident(2))));
}

TEST_F(FetchEngineParts, WhatCannotBeStoredDoesNotWaitForAPlace) {
    dataset = test::Dataset{{kLarge, kLarge, 3 * kLarge}};
    make({.window = kRecord, .memory = Bytes{4 * kPayload}}, Bytes{2 * kLarge + 4 * kPayload});
    EXPECT_THAT(fetch({0, 1}).fetches, SizeIs(2));
    EXPECT_THAT(fetch({2}).replies, SizeIs(1));
}

TEST_F(FetchEngineParts, SmallSamplesPassOneThatWaitsForRoom) {
    make({.window = Bytes{kLarge + kLarge / 2}, .memory = Bytes{4 * kPayload}}, Bytes::zero());
    EXPECT_THAT(fetch({0, 1, 5}).fetches, ElementsAre(in_parts(window(0)), window(5)));
    stored(5);
    EXPECT_THAT(stored(0).replies, SizeIs(1)) << "the other one is read at the origin";
}

TEST_F(FetchEngineParts, GuestsHaveOnePlaceBesideTheOwner) {
    constexpr Party kGuest{1};
    make(kLimits, Bytes::unlimited());
    engine->on_connect(kWorker, std::nullopt, kGuest);
    EXPECT_THAT(fetch({0, 1}, kWorker).fetches, ElementsAre(in_parts(resident(0))));
    EXPECT_FALSE(engine->is_urgent(0)) << "only a guest waits";
    EXPECT_THAT(fetch({2, 3}).fetches, ElementsAre(in_parts(resident(2))));
    EXPECT_THAT(stored(0).fetches, ElementsAre(in_parts(resident(3)))) << "the owner comes first";
    EXPECT_THAT(stored(2).fetches, ElementsAre(in_parts(resident(1))));
}

TEST_F(FetchEngineParts, AreStoppedWhenTheirLastReaderHasLeft) {
    make(kLimits, Bytes::unlimited());
    engine->on_connect(kWorker, std::nullopt);
    EXPECT_THAT(fetch({0, 1, 2, 3}).fetches, SizeIs(2));
    EXPECT_THAT(fetch({0}, kWorker).fetches, IsEmpty());
    const auto first = engine->on_disconnect(kTrainer, kNow);
    EXPECT_THAT(first.stops, IsEmpty()) << "the job may read them again";
    EXPECT_THAT(engine->on_disconnect(kWorker, kNow).stops, ElementsAre(0, 1));
    const auto ended = engine->on_stopped(0, kNow);
    EXPECT_THAT(ended.fetches, IsEmpty()) << "nobody waits for the others";
    engine->on_stopped(1, kNow);
    EXPECT_EQ(engine->account(), ByteAccount{});
}

TEST_F(FetchEngineParts, AWindowSampleIsStoppedWhenNobodyNeedsIt) {
    make({.window = Bytes{2 * kLarge}, .memory = Bytes{4 * kPayload}}, Bytes::zero());
    EXPECT_THAT(plan({0}).fetches, ElementsAre(in_parts(window(0))));
    EXPECT_THAT(consume({0}).stops, ElementsAre(0));
}

TEST_F(FetchEngineParts, ADemandDuringTheStopIsFetchedAgain) {
    make(kLimits, Bytes::unlimited());
    fetch({0});
    EXPECT_THAT(engine->on_disconnect(kTrainer, kNow).stops, ElementsAre(0));
    engine->on_connect(kTrainer, kStream);
    EXPECT_THAT(fetch({0}).fetches, IsEmpty());
    const auto ended = engine->on_stopped(0, kNow);
    EXPECT_THAT(ended.fetches, ElementsAre(in_parts(resident(0))));
    EXPECT_THAT(ended.replies, IsEmpty());
}

TEST_F(FetchEngineParts, AreStoppedWhenTheirGrantIsGoneUnlessAClientWaits) {
    make(kLimits, Bytes::unlimited());
    plan({0});
    fetch({1});
    const auto shrunk = engine->on_grant({Bytes::zero(), std::nullopt}, kNow);
    EXPECT_THAT(shrunk.stops, ElementsAre(0));
    EXPECT_THAT(stored(1).replies, SizeIs(1));
}

TEST_F(FetchEngineParts, AFillIsStoppedWithItsOrder) {
    make(kLimits, Bytes::unlimited());
    engine->on_disconnect(kTrainer, kNow);
    EXPECT_THAT(
        engine->on_grant({Bytes::unlimited(), std::nullopt, 0, 0}, kNow).fetches, SizeIs(2));
    EXPECT_THAT(engine->tick(kNow).stops, IsEmpty());
    EXPECT_THAT(
        engine->on_grant({Bytes::unlimited(), std::nullopt}, kNow).stops, ElementsAre(0, 1));
}

TEST_F(FetchEngineParts, EachPartTakesFromTheRateLimit) {
    make(kLimits, Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), std::nullopt, kPayload}, kNow);
    plan({0});
    EXPECT_THAT(engine->tick(kFull).fetches, SizeIs(1));
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, kFull));
    EXPECT_FALSE(engine->take_part(0, Bytes{kPayload}, kFull));
    const auto next = engine->next_deadline(kFull);
    ASSERT_TRUE(next.has_value());
    EXPECT_LE(*next, kFull + std::chrono::milliseconds{2});
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, *next));
    EXPECT_FALSE(engine->take_part(0, Bytes{kPayload}, *next));
    EXPECT_THAT(fetch({5}).fetches, SizeIs(1)) << "a small demand is at most a second away";
}

TEST_F(FetchEngineParts, ADemandedPartOverdrawsTheRateLimit) {
    make(kLimits, Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), std::nullopt, kPayload}, kNow);
    EXPECT_THAT(fetch({0}).fetches, SizeIs(1));
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, kFull));
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, kFull));
    EXPECT_FALSE(engine->take_part(0, Bytes{kPayload}, kFull));
    const auto next = engine->next_deadline(kFull);
    ASSERT_TRUE(next.has_value());
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, *next));
}

TEST_F(FetchEngineParts, EachPartOfAFillTakesFromItsRateLimit) {
    dataset = test::Dataset{{kLarge}};
    make(kLimits, Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), std::nullopt, 0, kPayload}, kNow);
    EXPECT_THAT(engine->tick(kFull).fetches, SizeIs(1));
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, kFull));
    EXPECT_FALSE(engine->take_part(0, Bytes{kPayload}, kFull));
    const auto next = engine->next_deadline(kFull);
    ASSERT_TRUE(next.has_value()) << "all samples are started, but this one goes on";
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, *next));
    fetch({0});
    EXPECT_TRUE(engine->take_part(0, Bytes{kPayload}, *next)) << "a client waits";
}

TEST_F(FetchEngineParts, WaitForMemoryOfWholeSamples) {
    make(kLimits, Bytes::unlimited());
    EXPECT_THAT(fetch({5, 6, 7}).fetches, SizeIs(3));
    EXPECT_THAT(fetch({0}).fetches, IsEmpty());
    EXPECT_THAT(stored(5).fetches, ElementsAre(in_parts(resident(0))));
}

TEST_F(FetchEngineParts, TwoReadersAreOneFetch) {
    make(kLimits, Bytes::unlimited());
    engine->on_connect(kWorker, std::nullopt);
    EXPECT_THAT(fetch({0}).fetches, SizeIs(1));
    EXPECT_THAT(fetch({0}, kWorker).fetches, IsEmpty());
    EXPECT_THAT(stored(0).replies, SizeIs(2));
}

TEST_F(FetchEngineParts, AFillFetchesAllOfThem) {
    make(kLimits, Bytes::unlimited());
    auto started = engine->on_grant({Bytes::unlimited(), std::nullopt, 0, 0}, kNow);
    std::size_t fetched = 0;
    while (!started.fetches.empty()) {
        EXPECT_LE(engine->parted().size(), kPartedMax);
        std::vector<StartFetch> next;
        for (const StartFetch& fetch : started.fetches) {
            ++fetched;
            const Effects effects = stored(fetch.sample);
            next.insert(next.end(), effects.fetches.begin(), effects.fetches.end());
        }
        started.fetches = next;
    }
    EXPECT_EQ(fetched, 10U);
    EXPECT_TRUE(engine->fill_state(kNow)->over);
}

TEST_F(FetchEngineParts, AFullDiskIsNoReasonToStopSmallSamples) {
    make(kLimits, Bytes::unlimited());
    fetch({0});
    const auto failed = engine->on_store_failed(0, kDiskFull, kNow);
    ASSERT_THAT(failed.replies, SizeIs(1));
    EXPECT_THAT(failed.replies[0].outcomes, ElementsAre(FetchOutcome::kReadAtOrigin));
    EXPECT_TRUE(engine->admission().is_admitting());
    EXPECT_THAT(plan({0, 5}).fetches, ElementsAre(resident(5))) << "the large one is not repeated";
}

TEST_F(FetchEngineParts, AFillPassesASampleThatTheDiskHasNoSpaceFor) {
    dataset = test::Dataset{{kLarge, kPayload}};
    make(kLimits, Bytes::unlimited());
    EXPECT_THAT(
        engine->on_grant({Bytes::unlimited(), std::nullopt, 0, 0}, kNow).fetches, SizeIs(2));
    EXPECT_THAT(engine->on_store_failed(0, kDiskFull, kNow).fetches, IsEmpty());
    stored(1);
    EXPECT_TRUE(engine->fill_state(kNow)->over);
    EXPECT_EQ(engine->fill_state(kNow)->refused, 1U);
}

TEST_F(FetchEngineParts, NothingIsEvictedForASampleThatTheDiskHasNoSpaceFor) {
    make(kLimits, Bytes{domain::record_bytes(kLarge)}, std::make_unique<Lru>());
    fetch({5});
    stored(5);
    consume({5});
    engine->set_disk_room(Bytes{kLarge});
    const auto asked = fetch({0});
    EXPECT_THAT(asked.drops, IsEmpty());
    EXPECT_THAT(asked.replies, SizeIs(1));
    engine->set_disk_room(Bytes{2 * kLarge});
    const auto again = fetch({0});
    EXPECT_THAT(again.drops, ElementsAre(5));
    EXPECT_THAT(again.fetches, ElementsAre(in_parts(resident(0))));
}

TEST_F(FetchEngineParts, AStoppedOneIsNoProbeOfTheStore) {
    make(kLimits, Bytes::unlimited());
    fetch({5});
    engine->on_store_failed(5, kDiskFull, kNow);
    const TimePoint later = *engine->admission().resident.retries_at();
    engine->on_fetch(kTrainer, 7, {0}, later);
    EXPECT_THAT(engine->on_fetch(kTrainer, 8, {6}, later).fetches, ElementsAre(resident(6)));
}

TEST_F(FetchEngineParts, WhatNoSegmentHoldsReadsTheOrigin) {
    dataset = test::Dataset{{domain::kSegmentBytesMax}};
    make(kLimits, Bytes::unlimited());
    const auto asked = fetch({0});
    EXPECT_THAT(asked.fetches, IsEmpty());
    EXPECT_THAT(asked.replies, SizeIs(1));
}

}  // namespace
}  // namespace stoker::sidecar
