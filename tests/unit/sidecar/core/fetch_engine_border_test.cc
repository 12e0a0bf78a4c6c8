// The boundary between two epochs, when the first one's plan includes the beginning of the second.
#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/fetch_engine_fixture.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FetchEngineBorder : public FetchEngineTest {
protected:
    ReadCounts read(SampleIndex sample, std::uint64_t epoch) {
        ReadCounts counts;
        engine->on_consumed(kTrainer, epoch, {sample}, kNow, &counts);
        return counts;
    }
};

TEST_F(FetchEngineBorder, PrefetchCrossesTheBoundaryInOrder) {
    make({.max_in_flight = 2}, Bytes::unlimited());
    EXPECT_THAT(plan({4, 5, 6, 7}, 1, 2).fetches, ElementsAre(resident(4), resident(5)));
    EXPECT_THAT(stored(5).fetches, ElementsAre(resident(6)));
    EXPECT_THAT(stored(6).fetches, ElementsAre(resident(7)));
}

TEST_F(FetchEngineBorder, FetchesThisEpochBeforeTheNext) {
    make({.window = kRecord * 2}, Bytes::zero());
    EXPECT_THAT(plan({4, 5, 6, 7}, 1, 1).fetches, ElementsAre(window(4), window(5)));
    stored(4);
    stored(5);
    EXPECT_THAT(consume({4}).fetches, ElementsAre(window(6)));
    stored(6);
    EXPECT_THAT(consume({5}).fetches, ElementsAre(window(7)));
}

TEST_F(FetchEngineBorder, KeepsNextEpochSamplesWhenItsPlanArrives) {
    make({.window = kRecord * 3}, Bytes::zero());
    plan({4, 5, 6, 7, 8}, 1, 3);
    for (const SampleIndex sample : {4, 5, 6}) {
        stored(sample);
    }
    EXPECT_THAT(consume({4, 5}).fetches, ElementsAre(window(7), window(8)));
    stored(7);
    const auto next = plan({6, 7, 8, 4, 5}, 2);
    EXPECT_THAT(next.drops, IsEmpty());
    EXPECT_THAT(next.fetches, IsEmpty()) << "the window is full of what comes next";
    stored(8);
    EXPECT_THAT(consume({6}, 2).fetches, ElementsAre(window(4)));
    EXPECT_EQ(engine->counters().fetches, 6U);
    EXPECT_EQ(engine->counters().evicted_window_samples, 0U);
}

TEST_F(FetchEngineBorder, WaitingDemandKeepsNextEpochSamples) {
    make({.window = kRecord * 2}, Bytes::zero());
    engine->on_connect(kWorker, std::nullopt);
    plan({4, 5, 6}, 1, 2);
    stored(4);
    stored(5);
    consume({4});
    stored(6);
    EXPECT_THAT(plan({5, 6, 7, 8}, 2).drops, IsEmpty());
    EXPECT_THAT(fetch({9}, kWorker).drops, ElementsAre(6)) << "the one that is needed last goes";
}

TEST_F(FetchEngineBorder, DropsSamplesThatTheNextPlanOmits) {
    make({.window = kRecord * 3}, Bytes::zero());
    plan({4, 5, 6}, 1, 2);
    for (const SampleIndex sample : {4, 5, 6}) {
        stored(sample);
    }
    const auto next = plan({6, 7}, 2);
    EXPECT_THAT(next.drops, testing::UnorderedElementsAre(4, 5));
    EXPECT_THAT(next.fetches, ElementsAre(window(7)));
}

TEST_F(FetchEngineBorder, KeepsAReadSampleThatIsNeededAgainSoon) {
    make({.window = kRecord * 3}, Bytes::zero());
    plan({4, 5, 5}, 1, 1);
    stored(4);
    stored(5);
    EXPECT_EQ(read(5, 1).fetched_samples, 1U);
    EXPECT_THAT(plan({5, 6}, 2).fetches, ElementsAre(window(6)));
    EXPECT_EQ(read(5, 2).hit_samples, 1U) << "nothing crossed the link for this read";
}

TEST_F(FetchEngineBorder, EvictsAReadSampleThatIsNeededAgainLate) {
    make({.window = kRecord * 2}, Bytes::zero());
    plan({4, 5, 6, 4}, 1, 2);
    stored(4);
    stored(5);
    const auto done = consume({4});
    EXPECT_THAT(done.drops, ElementsAre(4));
    EXPECT_THAT(done.fetches, ElementsAre(window(6)));
}

TEST_F(FetchEngineBorder, ReadsOfThisEpochDoNotCountForTheNext) {
    make({.window = kRecord * 3}, Bytes::zero());
    plan({4, 5}, 1, 1);
    stored(4);
    stored(5);
    EXPECT_THAT(consume({5, 5}).drops, IsEmpty());
    EXPECT_EQ(engine->sample(5).needs, 1U);
    EXPECT_THAT(plan({5}, 2).fetches, IsEmpty());
    EXPECT_THAT(consume({5}, 2).drops, ElementsAre(5));
}

TEST_F(FetchEngineBorder, FirstReadOfANextEpochSampleCountsAsFetched) {
    make(kRecord);
    plan({4, 5}, 1, 1);
    stored(4);
    stored(5);
    EXPECT_EQ(read(4, 1).fetched_samples, 1U);
    plan({5, 4}, 2);
    EXPECT_EQ(read(5, 2).fetched_samples, 1U);
    EXPECT_EQ(read(4, 2).hit_samples, 1U);
}

TEST_F(FetchEngineBorder, EndedStreamNeedsNoNextEpochSamples) {
    make({.window = kRecord * 3}, Bytes::zero());
    plan({4, 5}, 1, 1);
    stored(4);
    stored(5);
    consume({4});
    EXPECT_THAT(engine->on_disconnect(kTrainer, kNow).drops, ElementsAre(5));
    EXPECT_EQ(engine->account().window, Bytes::zero());
}

TEST_F(FetchEngineBorder, ReadResidentLeavesThePageCacheUnlessItIsNeededAgainSoon) {
    make({.readahead = Bytes::zero(), .page_cache = Bytes::zero()}, Bytes::unlimited());
    // Readahead covers at least the next eight positions of the plan. Sample 1 is read again within
    // them and stays in the page cache; sample 0 is read again after them.
    plan({0, 1, 2, 1, 3, 4, 5, 6, 7, 8, 9, 0}, 1, 9);
    for (SampleIndex sample = 0; sample < 10; ++sample) {
        stored(sample);
    }
    EXPECT_THAT(consume({0, 1}).wont_need, ElementsAre(0));
}

}  // namespace
}  // namespace stoker::sidecar
