// Chunks that are fetched together, ahead of need.
#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Chunk 0: samples 0 to 4; chunk 1: 5 to 9.
class FetchEngineChunks : public FetchEngineTest {
protected:
    void make_chunked(EngineLimits limits, Bytes grant = Bytes::unlimited()) {
        chunks = {{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, dataset.manifest()};
        engine.emplace(dataset.manifest(), limits, EngineGrant{grant, std::nullopt});
        engine->set_chunks(&chunks);
        engine->open(kNow);
        engine->on_connect(kTrainer, kStream);
        engine->set_by_chunk(kStream, true);
    }

    SampleChunks chunks;
};

TEST_F(FetchEngineChunks, FetchesAChunkWholeInOneSlot) {
    make_chunked({.max_in_flight = 1});
    EXPECT_THAT(plan({7, 1, 5, 6, 0}).fetches, ElementsAre(resident(7), resident(5), resident(6)));
    EXPECT_THAT(stored(5).fetches, IsEmpty()) << "7 has the slot";
    EXPECT_THAT(stored(7).fetches, ElementsAre(resident(1), resident(0))) << "6 has none";
}

TEST_F(FetchEngineChunks, DemandFetchesItsChunkToo) {
    make_chunked({.max_in_flight = 1});
    plan({7, 1, 0, 2});
    EXPECT_THAT(fetch({1}).fetches, IsEmpty()) << "7 has the slot";
    EXPECT_THAT(stored(7).fetches, ElementsAre(resident(1), resident(0), resident(2)));
}

TEST_F(FetchEngineChunks, DemandOutsideThePlanIsFetchedAlone) {
    make_chunked({});
    EXPECT_THAT(fetch({9}).fetches, ElementsAre(resident(9)));
}

TEST_F(FetchEngineChunks, FetchesInPlanOrderForOtherStreams) {
    make_chunked({.max_in_flight = 2});
    engine->set_by_chunk(kStream, false);
    EXPECT_THAT(plan({7, 1, 5, 0}).fetches, ElementsAre(resident(7), resident(1)));
}

TEST_F(FetchEngineChunks, SkipsStoredSamples) {
    make_chunked({.max_in_flight = 1});
    fetch({5});
    stored(5);
    EXPECT_THAT(plan({7, 5, 6}).fetches, ElementsAre(resident(7), resident(6)));
}

TEST_F(FetchEngineChunks, SecondChunkWaitsForMemory) {
    make_chunked({.memory = Bytes{5 * kPayload}, .max_in_flight = 8});
    EXPECT_THAT(
        plan({0, 5, 1, 6, 2, 7}).fetches, ElementsAre(resident(0), resident(1), resident(2)));
    EXPECT_THAT(stored(0).fetches, ElementsAre(resident(5), resident(6), resident(7)))
        << "memory has room for half of what it holds";
}

TEST_F(FetchEngineChunks, PrefetchesOnlySamplesThatFitIntoTheWindow) {
    make_chunked({.window = kRecord * 3}, Bytes::zero());
    EXPECT_THAT(plan({0, 5, 6, 1, 2, 3}).fetches, ElementsAre(window(0), window(5), window(6)));
}

TEST_F(FetchEngineChunks, DoesNotEvictPrefetchedSamples) {
    make_chunked({.window = kRecord * 6}, Bytes::zero());
    EXPECT_THAT(
        plan({0, 5, 1, 2, 3, 6, 7, 8}).fetches,
        ElementsAre(window(0), window(1), window(2), window(3), window(5), window(6)));
    for (const SampleIndex sample : {0U, 1U, 2U, 3U, 5U, 6U}) {
        EXPECT_THAT(stored(sample).drops, IsEmpty());
    }
    const auto read = consume({0});
    EXPECT_THAT(read.drops, ElementsAre(0));
    EXPECT_THAT(read.fetches, IsEmpty()) << "less than a quarter of the room is left";
    EXPECT_THAT(consume({5}).fetches, ElementsAre(window(7), window(8)));
}

TEST_F(FetchEngineChunks, GuestsFetchInPlanOrder) {
    make_chunked({.max_in_flight = 20});
    constexpr ConnectionId kGuest{9};
    constexpr StreamId kTheirs{9};
    engine->on_connect(kGuest, kTheirs, Party{1});
    engine->set_by_chunk(kTheirs, true);
    const auto fetches =
        engine->on_plan(kGuest, StreamPlan::make(1, {7, 1, 5, 0}, 0, 10).value(), kNow).fetches;
    EXPECT_THAT(fetches, ElementsAre(resident(7), resident(1), resident(5), resident(0)));
}

}  // namespace
}  // namespace stoker::sidecar
