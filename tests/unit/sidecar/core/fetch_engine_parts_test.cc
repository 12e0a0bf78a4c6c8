// Samples of more than half of the memory, which are fetched in parts.
#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kLarge = 10 * kPayload;
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
    EXPECT_THAT(fetch({0, 1, 2}).fetches, SizeIs(3));
    EXPECT_THAT(fetch({5, 6, 7}).fetches, ElementsAre(resident(5), resident(6)));
    EXPECT_THAT(stored(0).fetches, IsEmpty());
    EXPECT_THAT(stored(5).fetches, ElementsAre(resident(7)));
    EXPECT_EQ(engine->account().parted_samples, 2U);
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

TEST_F(FetchEngineParts, AtMostTwoAreFetchedAhead) {
    make(kLimits, Bytes::unlimited());
    EXPECT_THAT(
        plan({0, 1, 2, 3}).fetches, ElementsAre(in_parts(resident(0)), in_parts(resident(1))));
    EXPECT_THAT(fetch({3}).fetches, ElementsAre(in_parts(resident(3)))) << "a demand is fetched";
    EXPECT_THAT(stored(3).fetches, IsEmpty());
    EXPECT_THAT(stored(0).fetches, ElementsAre(in_parts(resident(2))));
}

TEST_F(FetchEngineParts, AFillFetchesAllOfThem) {
    make(kLimits, Bytes::unlimited());
    auto started = engine->on_grant({Bytes::unlimited(), std::nullopt, 0, 0}, kNow);
    std::size_t fetched = 0;
    while (!started.fetches.empty()) {
        EXPECT_LE(engine->account().parted_samples, kPartedAheadMax);
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

TEST_F(FetchEngineParts, WhatNoSegmentHoldsReadsTheOrigin) {
    dataset = test::Dataset{{domain::kSegmentBytesMax}};
    make(kLimits, Bytes::unlimited());
    const auto asked = fetch({0});
    EXPECT_THAT(asked.fetches, IsEmpty());
    EXPECT_THAT(asked.replies, SizeIs(1));
}

}  // namespace
}  // namespace stoker::sidecar
