// Samples that the owner and a guest hold, and whose share of the window they use.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr ConnectionId kGuest{11};
constexpr ConnectionId kOtherGuest{12};
constexpr StreamId kGuestStream{77};

class FetchEngineHolds : public FetchEngineTest {
protected:
    void make_with_guest(EngineLimits limits) {
        make(limits, Bytes::zero());
        engine->on_connect(kGuest, kGuestStream, Party{1});
    }

    // The guest fetches the samples.
    void guest_has(const std::vector<SampleIndex>& samples) {
        fetch(samples, kGuest);
        std::ranges::for_each(samples, [this](SampleIndex sample) { stored(sample); });
    }

    Effects guest_reads(const std::vector<SampleIndex>& samples) {
        return engine->on_consumed(kGuest, 1, samples, kNow);
    }
};

TEST_F(FetchEngineHolds, SampleThatOnlyTheOwnerHoldsLeavesTheGuestsShare) {
    make_with_guest({.window = kRecord * 8});
    fetch({0, 1, 2}, kGuest);
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        stored(sample);
    }
    const auto shared = fetch({0, 1});
    EXPECT_THAT(shared.replies, ElementsAre(ready(request, 2)));
    const auto asked = fetch({5, 6, 7, 8}, kGuest);
    EXPECT_THAT(asked.fetches, SizeIs(4)) << "the guest holds none of the first three";
}

// Seed 50144 of tests/world, at 327 s: the owner's clients held three quarters of the window.
TEST_F(FetchEngineHolds, OwnersHoldsLeaveTheGuestItsShare) {
    make_with_guest({.window = kRecord * 8});
    fetch({0, 1, 2, 3}, kGuest);
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    fetch({0, 1, 5, 6, 7, 8});
    for (SampleIndex sample = 5; sample < 9; ++sample) {
        stored(sample);
    }
    const auto asked = fetch({2, 3, 4, 9}, kGuest);
    EXPECT_THAT(asked.drops, ElementsAre(0, 1)) << "beyond the owner's share";
    EXPECT_THAT(asked.fetches, ElementsAre(window(4), window(9)));
}

TEST_F(FetchEngineHolds, OwnerHoldsSamplesOfAGuestThatItsPlanNeedsWithinItsShareOnly) {
    make_with_guest({.window = kRecord * 8});
    engine->on_connect(kWorker, std::nullopt);
    guest_has({0, 1, 2, 3});
    plan({0, 1, 2, 3});
    fetch({5, 6, 7, 8});
    for (SampleIndex sample = 5; sample < 9; ++sample) {
        stored(sample);
    }
    EXPECT_THAT(guest_reads({0, 1, 2, 3}).drops, IsEmpty()) << "the owner's plan needs them";
    EXPECT_THAT(fetch({0, 1, 2, 3}, kWorker).drops, IsEmpty()) << "nobody else needs the room";
    const auto asked = fetch({9}, kGuest);
    EXPECT_THAT(asked.fetches, ElementsAre(window(9)));
    EXPECT_THAT(asked.drops, SizeIs(1));
}

TEST_F(FetchEngineHolds, SampleStaysWhileTheOwnersHoldsFitBesideItsPrefetchesInFlight) {
    make_with_guest({.window = kRecord * 8});
    engine->on_connect(kWorker, std::nullopt);
    guest_has({0, 1, 2, 3});
    plan({5, 6, 7, 8});  // these samples are now in flight
    fetch({0, 1}, kWorker);
    EXPECT_THAT(guest_reads({0, 1}).drops, IsEmpty());
    EXPECT_THAT(fetch({2, 3, 4}, kGuest).drops, IsEmpty());
    EXPECT_EQ(engine->sample(0).holds, 1U);
    EXPECT_THAT(stored(5).fetches, ElementsAre(window(4))) << "in the room of a prefetch";
    EXPECT_EQ(engine->sample(0).holds, 1U);
}

TEST_F(FetchEngineHolds, SampleBeyondTheOwnersShareEvictsNoneOfItsPrefetches) {
    make_with_guest({.window = kRecord * 8});
    engine->on_connect(kWorker, std::nullopt);
    guest_has({0, 1, 2});
    plan({5, 6, 7, 8});
    for (SampleIndex sample = 5; sample < 9; ++sample) {
        stored(sample);
    }
    fetch({0}, kWorker);
    EXPECT_THAT(guest_reads({0}).drops, IsEmpty());
    EXPECT_THAT(fetch({1, 2, 4}, kGuest).drops, IsEmpty()) << "the window has room";
}

TEST_F(FetchEngineHolds, OwnerKeepsItsOwnSamplesBeyondItsShare) {
    make({.window = kRecord * 4}, Bytes::zero());
    fetch({0, 1, 2, 3});
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    engine->on_connect(kGuest, kGuestStream, Party{1});
    EXPECT_THAT(fetch({9}, kGuest).drops, IsEmpty()) << "fetched for the owner";
}

TEST_F(FetchEngineHolds, OwnersPrefetchesMakeRoomForWhatItHolds) {
    make_with_guest({.window = kRecord * 8});
    plan({5, 6, 7, 8});
    for (SampleIndex sample = 5; sample < 9; ++sample) {
        stored(sample);
    }
    fetch({0, 1, 2, 3}, kGuest);
    for (SampleIndex sample = 0; sample < 4; ++sample) {
        stored(sample);
    }
    fetch({0});
    const auto asked = fetch({1, 2, 3, 4}, kGuest);
    EXPECT_THAT(asked.drops, ElementsAre(8)) << "needed last";
    EXPECT_THAT(asked.fetches, ElementsAre(window(4)));
}

TEST_F(FetchEngineHolds, OwnersNextBatchIsHeldInTheRoomOfItsLast) {
    make_with_guest({.window = kRecord * 8});
    engine->on_plan(kGuest, StreamPlan::make(1, {0}, 0, 10).value(), kNow);
    stored(0);
    fetch({5, 6, 7, 8});
    for (SampleIndex sample = 5; sample < 9; ++sample) {
        stored(sample);
    }
    fetch({0});
    EXPECT_EQ(engine->sample(0).holds, 1U);
}

TEST_F(FetchEngineHolds, SampleThatTheGuestHoldsStaysInItsShare) {
    make_with_guest({.window = kRecord * 8});
    fetch({0}, kGuest);
    stored(0);
    fetch({0});
    engine->on_connect(kOtherGuest, std::nullopt, Party{1});
    EXPECT_THAT(fetch({5, 6, 7, 8}, kOtherGuest).fetches, SizeIs(3));
}

}  // namespace
}  // namespace stoker::sidecar
