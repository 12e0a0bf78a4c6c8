// Resources that guests share with the dataset's own namespace (in this file: "the owner").
#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "sidecar/core/eviction/least_used.h"
#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr ConnectionId kGuest{11};
constexpr ConnectionId kOtherGuest{12};
constexpr StreamId kGuestStream{77};

class FetchEngineParties : public FetchEngineTest {
protected:
    void make_with_guest(EngineLimits limits, Bytes grant = Bytes::zero()) {
        make(limits, grant);
        engine->on_connect(kGuest, kGuestStream, Party{1});
    }

    Effects guest_plans(std::vector<SampleIndex> samples) {
        return engine->on_plan(
            kGuest, StreamPlan::make(1, std::move(samples), 0, 10).value(), kNow);
    }

    Effects guest_reads(std::vector<SampleIndex> samples) {
        return engine->on_consumed(kGuest, 1, samples, kNow);
    }
};

TEST_F(FetchEngineParties, GuestsTakeTurnsWithDemands) {
    make_with_guest({.max_in_flight = 1}, Bytes::unlimited());
    engine->on_connect(kOtherGuest, std::nullopt, Party{2});
    EXPECT_THAT(fetch({0, 1, 2, 3}, kGuest).fetches, ElementsAre(resident(0)));
    EXPECT_THAT(fetch({5, 6}, kOtherGuest).fetches, IsEmpty());
    EXPECT_THAT(stored(0).fetches, ElementsAre(resident(5)));
    EXPECT_THAT(stored(5).fetches, ElementsAre(resident(1)));
    EXPECT_THAT(stored(1).fetches, ElementsAre(resident(6)));
}

TEST_F(FetchEngineParties, GuestsTakeNoneOfTheOwnersSlots) {
    make_with_guest({.max_in_flight = 4}, Bytes::unlimited());
    EXPECT_THAT(fetch({0, 1, 2, 3, 4}, kGuest).fetches, SizeIs(4));
    EXPECT_THAT(fetch({5}).fetches, ElementsAre(resident(5)));
    EXPECT_THAT(plan({6, 7, 8, 9}).fetches, SizeIs(3));
}

TEST_F(FetchEngineParties, GuestsHaveASlotWhileTheOwnerUsesAllOfItsOwn) {
    make_with_guest({.max_in_flight = 2}, Bytes::unlimited());
    EXPECT_THAT(fetch({0, 1, 2}).fetches, SizeIs(2));
    EXPECT_THAT(guest_plans({7, 8, 9}).fetches, ElementsAre(resident(7)));
    EXPECT_THAT(stored(0).fetches, ElementsAre(resident(2)));
    EXPECT_EQ(engine->account().in_flight_samples, 3U);
    EXPECT_THAT(stored(7).fetches, ElementsAre(resident(8)));
}

// Otherwise a guest waits as long as the owner has demands (20 s in seed 70006 of tests/world).
TEST_F(FetchEngineParties, OwnersDemandsThatWaitForASlotLeaveGuestsTheirs) {
    make_with_guest({.max_in_flight = 1}, Bytes::unlimited());
    fetch({0, 1, 2});
    EXPECT_THAT(fetch({7, 8}, kGuest).fetches, ElementsAre(resident(7)));
    EXPECT_THAT(stored(7).fetches, ElementsAre(resident(8)));
}

TEST_F(FetchEngineParties, LoneGuestHasAllSlots) {
    make({.max_in_flight = 4}, Bytes::unlimited());
    engine->on_disconnect(kTrainer, kNow);
    engine->on_connect(kGuest, kGuestStream, Party{1});
    EXPECT_THAT(fetch({0, 1, 2, 3, 4}, kGuest).fetches, SizeIs(4));
}

TEST_F(FetchEngineParties, GuestHoldsAtMostItsWindowShare) {
    make_with_guest({.window = kRecord * 8});
    fetch({0, 1, 2, 3, 4, 5}, kGuest);
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    EXPECT_EQ(engine->account().window, kRecord * 4);
    EXPECT_THAT(fetch({6, 7, 8, 9}).fetches, SizeIs(4)) << "the other half is ours";
}

TEST_F(FetchEngineParties, GuestAtItsWindowShareReadsTheOrigin) {
    make_with_guest({.window = kRecord * 4});
    fetch({0, 1}, kGuest);
    stored(0);
    stored(1);
    const auto asked = fetch({2}, kGuest);
    EXPECT_THAT(asked.fetches, ElementsAre(window(2))) << "the next fetch let go of the last";
    engine->on_connect(kOtherGuest, std::nullopt, Party{1});
    stored(2);
    const auto beyond = fetch({3, 4}, kOtherGuest);
    EXPECT_THAT(beyond.fetches, ElementsAre(window(3)));
}

TEST_F(FetchEngineParties, GuestsGetOneEleventhOfTheRateLimit) {
    make_with_guest({}, Bytes::unlimited());
    engine->on_grant({Bytes::unlimited(), std::nullopt, kPayload}, kNow);
    std::vector<SampleIndex> fetched;
    const auto take = [&fetched](const Effects& effects) {
        std::ranges::transform(
            effects.fetches, std::back_inserter(fetched), [](auto fetch) { return fetch.sample; });
    };
    take(guest_plans({8, 9}));
    take(plan({0, 1, 2, 3, 4, 5, 6, 7}));
    std::size_t arrived = 0;
    for (TimePoint now = kNow; now < kNow + std::chrono::seconds{20};
         now += std::chrono::seconds{1}) {
        take(engine->tick(now));
        for (; arrived < fetched.size(); ++arrived) {
            take(engine->on_stored(fetched[arrived], now));
        }
    }
    ASSERT_THAT(fetched, SizeIs(10));
    EXPECT_EQ(fetched.back(), 9U);
}

TEST_F(FetchEngineParties, GuestsDemandEvictsNoResidentIfOnlyGuestsRankThem) {
    for (const bool ranked : {true, false}) {
        make_with_guest({}, kRecord * 2);
        engine->set_eviction(std::make_unique<Lru>());
        engine->set_ranked_by_guests(ranked);
        plan({0, 1});
        stored(0);
        stored(1);
        consume({0, 1});
        const auto asked = fetch({5}, kGuest);
        EXPECT_THAT(asked.fetches, ElementsAre(ranked ? window(5) : resident(5)));
        EXPECT_THAT(asked.drops, SizeIs(ranked ? 0 : 1));
    }
}

TEST_F(FetchEngineParties, GuestsHoldsDoNotKeepOthersSamples) {
    make_with_guest({.window = kRecord * 8});
    plan({0, 1});
    stored(0);
    const auto asked = fetch({0}, kGuest);
    EXPECT_THAT(asked.replies, ElementsAre(ready(request, 1, kGuest)));
    EXPECT_THAT(consume({0}).drops, ElementsAre(0));
}

TEST_F(FetchEngineParties, VerifiesASampleThatAGuestReportsDamaged) {
    make_with_guest({}, Bytes::unlimited());
    plan({0});
    stored(0);
    fetch({0}, kGuest);
    EXPECT_THAT(fetch({0}, kGuest).verifies, ElementsAre(0));
}

TEST_F(FetchEngineParties, LimitsAGuestsVerificationsPerSecond) {
    make_with_guest({}, Bytes::unlimited());
    plan({0});
    stored(0);
    std::size_t verified = 0;
    for (int again = 0; again < 1000; ++again) {
        verified += fetch({0}, kGuest).verifies.size();
        if (engine->sample(0).verifying) {
            engine->on_verified(0, true, kNow);
        }
    }
    EXPECT_EQ(verified, 64U);
}

TEST_F(FetchEngineParties, GuestsDemandKeepsOwnersPrefetchesWithinItsShare) {
    make_with_guest({.window = kRecord * 4});
    plan({0, 1});
    stored(0);
    stored(1);
    fetch({5, 6}, kGuest);
    stored(5);
    stored(6);
    const auto asked = fetch({7, 8}, kGuest);
    EXPECT_THAT(asked.drops, Not(Contains(0)));
    EXPECT_THAT(asked.drops, Not(Contains(1)));
}

TEST_F(FetchEngineParties, GuestEvictsOwnersSamplesBeyondItsShare) {
    make({.window = kRecord * 4}, Bytes::zero());
    plan({0, 1, 2, 3});
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    engine->on_connect(kGuest, kGuestStream, Party{1});
    const auto asked = fetch({9}, kGuest);
    EXPECT_THAT(asked.drops, ElementsAre(3)) << "needed last";
    EXPECT_THAT(asked.fetches, ElementsAre(window(9)));
}

TEST_F(FetchEngineParties, SampleThatAnEvictionSkippedMayBeEvictedLater) {
    make_with_guest({.window = kRecord * 6});
    plan({0, 1, 2});
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        stored(sample);
    }
    guest_plans({2});
    EXPECT_THAT(fetch({5, 6, 7}).fetches, ElementsAre(window(5), window(6), window(7)));
}

TEST_F(FetchEngineParties, GuestsPlanProtectsNoSampleOfTheOwner) {
    make_with_guest({.window = kRecord * 4});
    plan({0, 1, 2, 3});
    stored(0);
    stored(1);
    guest_plans({0, 1, 2, 3, 4, 5});
    consume({0, 1});
    const auto& account = engine->account();
    EXPECT_LE(account.window, kRecord * 4);
    EXPECT_THAT(fetch({2}).replies, IsEmpty());
    EXPECT_EQ(engine->sample(2).state, SampleState::kFetching) << "ours goes on";
}

TEST_F(FetchEngineParties, GuestsPlanProtectsNoSampleOfAnotherGuestWhileTheOwnerIsAway) {
    make_with_guest({.window = kRecord * 8});
    engine->on_disconnect(kTrainer, kNow);
    engine->on_connect(kOtherGuest, std::nullopt, Party{2});
    fetch({0, 1, 2}, kOtherGuest);
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        stored(sample);
    }
    guest_plans({0, 1, 2});
    const auto asked = fetch({9}, kOtherGuest);
    EXPECT_THAT(asked.fetches, ElementsAre(window(9)));
    EXPECT_THAT(asked.drops, SizeIs(1)) << "its share has room for three";
}

// A sample that was fetched for a guest, and that only the owner's plan still needs soon, no longer
// counts towards the guest's share (found by seed 54 of tests/world).
TEST_F(FetchEngineParties, SamplesReadByAGuestCountForTheOwnerThatNeedsThem) {
    make_with_guest({.window = kRecord * 8});
    fetch({0, 1, 2, 3}, kGuest);
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    plan({0, 1, 2, 3});
    EXPECT_THAT(guest_reads({0, 1, 2, 3}).drops, IsEmpty());
    const auto asked = fetch({8, 9}, kGuest);
    EXPECT_THAT(asked.fetches, ElementsAre(window(8), window(9)));
    EXPECT_THAT(asked.drops, IsEmpty()) << "the owner has room for four";
}

TEST_F(FetchEngineParties, SamplesReadByAGuestCountForTheOwnerOnceItNeedsThemSoon) {
    make_with_guest({.window = kRecord * 4});
    plan({4, 5, 0, 1, 6, 7});
    stored(4);
    stored(5);
    fetch({0, 1}, kGuest);
    stored(0);
    stored(1);
    guest_reads({0, 1});
    consume({4, 5});
    EXPECT_THAT(fetch({9}, kGuest).fetches, ElementsAre(window(9)));
}

TEST_F(FetchEngineParties, OwnersNeedsDoNotProtectWhatTheGuestPrefetched) {
    make_with_guest({.window = kRecord * 4});
    engine->on_connect(kWorker, StreamId{8});
    plan({0, 1});
    stored(0);
    stored(1);
    guest_plans({0, 1, 8, 7});
    stored(8);
    stored(7);
    plan({8, 0, 1});
    engine->on_plan(kWorker, StreamPlan::make(1, {7, 0, 1}, 0, 10).value(), kNow);
    EXPECT_THAT(fetch({9}, kGuest).fetches, ElementsAre(window(9)));
}

// Stands for a scan, which fetches each sample once for several jobs: it keeps the samples that it
// will still read, in an order that is not known.
struct Keeper final : WindowKeeper {
    explicit Keeper(std::set<SampleIndex> samples)
        : kept(std::move(samples)) {}

    [[nodiscard]] bool keeps(SampleIndex sample) const override { return kept.contains(sample); }

    void victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const override {
        const auto victim = std::ranges::find_if(kept, room.may_go);
        if (victim != kept.end()) {
            samples.push_back(*victim);
        }
    }

    std::set<SampleIndex> kept;
};

// Found by seed 50144 of tests/world.
TEST_F(FetchEngineParties, SamplesFetchedForAGuestCountForAnOwnerWhoseScanAndPlanNeedThem) {
    const Keeper keeper{{0, 1}};
    make_with_guest({.window = kRecord * 4});
    engine->set_window_keeper(&keeper);
    engine->on_bypass(kTrainer, true, kNow);
    plan({0, 1});
    fetch({0, 1}, kGuest);
    stored(0);
    stored(1);
    guest_reads({0, 1});
    engine->on_bypass(kTrainer, false, kNow);  // the plan protects both from now on
    EXPECT_THAT(fetch({9}, kGuest).fetches, ElementsAre(window(9)));
}

TEST_F(FetchEngineParties, OwnersScanDoesNotProtectWhatTheGuestPrefetched) {
    const Keeper keeper{{2, 3}};
    make_with_guest({.window = kRecord * 12});
    engine->set_window_keeper(&keeper);
    engine->on_connect(kWorker, StreamId{8});
    engine->on_bypass(kWorker, true, kNow);  // it needs both soon, but nothing is prefetched for it
    engine->on_plan(kWorker, StreamPlan::make(1, {3, 2}, 0, 10).value(), kNow);
    guest_plans({0, 1, 4, 5, 2, 3});
    for (SampleIndex sample = 0; sample < 6; ++sample) {
        stored(sample);
    }
    fetch({0, 1, 4, 5}, kGuest);
    engine->on_connect(kOtherGuest, std::nullopt, Party{1});
    EXPECT_THAT(fetch({9}, kOtherGuest).fetches, Contains(window(9)));
}

// Seed 50144 of tests/world: the owner's batches were larger than its share of the window.
TEST_F(FetchEngineParties, OwnersFullShareSendsNoGuestToTheOrigin) {
    make_with_guest({.window = kRecord * 4});
    engine->on_connect(kWorker, std::nullopt);
    fetch({9}, kGuest);  // so the owner's turns come first
    stored(9);
    fetch({0, 1});
    fetch({5}, kWorker);
    fetch({5}, kGuest);
    stored(0);
    const auto full = stored(1);
    EXPECT_THAT(full.replies, Contains(testing::Field(&FetchReply::connection, kWorker)));
    EXPECT_THAT(full.replies, Not(Contains(testing::Field(&FetchReply::connection, kGuest))));
    EXPECT_THAT(full.fetches, ElementsAre(window(5)));
    EXPECT_THAT(stored(5).replies, ElementsAre(ready(request, 1, kGuest)));
}

TEST_F(FetchEngineParties, SamplesThatGuestAndOwnerNeedCountForTheGuestThatFetchedThem) {
    make_with_guest({.window = kRecord * 4});
    guest_plans({0, 1, 2, 3});
    stored(0);
    stored(1);
    plan({1, 0});
    fetch({0}, kGuest);
    EXPECT_THAT(fetch({1}, kGuest).fetches, IsEmpty()) << "its share is full";
}

TEST_F(FetchEngineParties, GuestFindsItsEvictableSamplesBehindManyOfTheOwner) {
    constexpr SampleIndex kOwners = 100;
    constexpr SampleIndex kAll = 220;
    dataset = test::Dataset{std::vector<std::uint64_t>(kAll + 1, kPayload)};
    make_with_guest({.window = kRecord * 240});
    std::vector<SampleIndex> samples(kAll);
    std::iota(samples.begin(), samples.end(), 0);
    engine->on_connect(kWorker, StreamId{8});
    engine->on_bypass(kWorker, true, kNow);  // it needs them all, but nothing is prefetched for it
    engine->on_plan(kWorker, StreamPlan::make(1, samples, 0, kAll + 1).value(), kNow);
    fetch({samples.begin(), samples.begin() + kOwners});
    fetch({samples.begin() + kOwners, samples.end()}, kGuest);
    for (const SampleIndex sample : samples) {
        stored(sample);
    }
    fetch({});
    fetch({}, kGuest);
    EXPECT_THAT(fetch({kAll}, kGuest).fetches, ElementsAre(window(kAll)));
}

TEST_F(FetchEngineParties, GuestsFetchFailureKeepsOwnersPrefetchRunning) {
    make_with_guest({.max_in_flight = 4}, Bytes::unlimited());
    fetch({9}, kGuest);
    engine->on_fetch_failed(9, kDown, kNow);
    EXPECT_THAT(plan({0, 1}).fetches, ElementsAre(resident(0), resident(1)));
}

TEST_F(FetchEngineParties, ReadsOfAGuestDoNotChangeTheOwnersReadCounts) {
    make_with_guest({}, Bytes::unlimited());
    plan({0, 1});
    stored(0);
    guest_reads({0});
    ReadCounts counts;
    engine->on_consumed(kTrainer, 1, {0}, kNow, &counts);
    EXPECT_EQ(counts.fetched_samples, 1U);
    fetch({5}, kGuest);
    stored(5);
    engine->on_consumed(kTrainer, 1, {5}, kNow, &counts);
    EXPECT_EQ(counts.hit_samples, 1U) << "fetched for the guest";
}

// No client reads, so each plan is fetched once; a party's latest fetches are not evicted for
// others.
TEST_F(FetchEngineParties, PartiesDoNotEvictEachOthersPrefetches) {
    make({.window = kRecord * 2, .max_in_flight = 1}, kRecord * 2, std::make_unique<Lru>());
    engine->on_connect(kGuest, kGuestStream, Party{1});
    std::deque<SampleIndex> coming;
    const auto take = [&coming](const Effects& effects) {
        for (const StartFetch& fetch : effects.fetches) {
            coming.push_back(fetch.sample);
        }
    };
    take(plan({0, 1, 2, 3, 4}));
    take(guest_plans({5, 6, 7, 8, 9}));
    for (int round = 0; round < 1000 && !coming.empty(); ++round) {
        const SampleIndex sample = coming.front();
        coming.pop_front();
        take(stored(sample));
    }
    EXPECT_LE(engine->counters().fetches, 10U);
    EXPECT_TRUE(coming.empty());
}

TEST_F(FetchEngineParties, GuestsHoldKeepsNoResidentBeyondTheGrant) {
    make_with_guest({}, Bytes::unlimited());
    fetch({0}, kGuest);
    stored(0);
    EXPECT_THAT(engine->on_grant({Bytes::zero(), std::nullopt}, kNow).drops, ElementsAre(0));
}

TEST_F(FetchEngineParties, DropsWindowSamplesOfALeavingGuest) {
    make_with_guest({.window = kRecord * 4});
    fetch({0, 1}, kGuest);
    stored(0);
    stored(1);
    engine->on_disconnect(kGuest, kNow);
    EXPECT_EQ(engine->account().window, Bytes::zero());
    EXPECT_THAT(plan({0, 1, 2, 3}).fetches, SizeIs(4));
}

}  // namespace
}  // namespace stoker::sidecar
