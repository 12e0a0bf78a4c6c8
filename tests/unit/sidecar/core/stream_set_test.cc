#include "sidecar/core/stream_set.h"

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;

constexpr StreamId kA{1};
constexpr StreamId kB{2};

class StreamSetTest : public testing::Test {
protected:
    void plan(StreamId stream, std::vector<SampleIndex> samples, std::uint64_t ahead = 0) {
        streams.join(stream);
        replace(stream, std::move(samples), 0, ahead);
    }

    void replace(
        StreamId stream,
        std::vector<SampleIndex> samples,
        std::uint64_t start = 0,
        std::uint64_t ahead = 0) {
        streams.replace_plan(
            stream, StreamPlan::make(1, std::move(samples), start, 100, ahead).value());
    }

    std::optional<SampleIndex> nearest() {
        std::uint32_t steps = 1000;
        const auto found =
            streams.nearest([this](SampleIndex sample) { return !here.contains(sample); }, steps);
        return found ? std::optional{found->sample} : std::nullopt;
    }

    std::optional<SampleIndex> farthest() {
        std::uint32_t steps = 1000;
        return streams.farthest(
            [this](SampleIndex sample) { return here.contains(sample); }, steps);
    }

    // All wanted samples, in the order in which they would be fetched.
    std::vector<SampleIndex> fetch_all() {
        std::vector<SampleIndex> order;
        while (const auto sample = nearest()) {
            here.insert(*sample);
            order.push_back(*sample);
        }
        return order;
    }

    StreamSet streams;
    std::set<SampleIndex> here;
};

TEST_F(StreamSetTest, SamplesOfATakenChunkAreNear) {
    plan(kA, {1, 2, 3, 4, 5, 6});
    const std::vector<SampleIndex> chunk = {2, 5, 6, 9};
    EXPECT_THAT(streams.take_chunk(kA, chunk, 5), ElementsAre(2, 5));
    EXPECT_TRUE(streams.is_near(5));
    EXPECT_FALSE(streams.is_near(6));
}

TEST_F(StreamSetTest, ChunkTakenAheadStaysNearUnderThePlansThatFollow) {
    plan(kA, {1, 2, 3, 4, 5, 6});
    streams.set_by_chunk(kA, true);
    streams.take_chunk(kA, std::vector<SampleIndex>{1, 5}, 100);
    streams.with_plan(kA)->plan->read(1);
    replace(kA, {2, 3, 4, 5, 6, 7});
    EXPECT_TRUE(streams.is_near(5));
    EXPECT_FALSE(streams.is_near(6));
    streams.extend_plan(kA, {2, {4, 5, 6, 7, 8}});
    EXPECT_TRUE(streams.is_near(5));
    streams.set_by_chunk(kA, false);
    replace(kA, {2, 3, 4, 5, 6, 7});
    EXPECT_FALSE(streams.is_near(5));
}

TEST_F(StreamSetTest, TakesTurnsBetweenReadersAtEqualDistance) {
    plan(kA, {1, 2, 3});
    plan(kB, {11, 12, 13});
    EXPECT_THAT(fetch_all(), ElementsAre(1, 11, 2, 12, 3, 13));
}

TEST_F(StreamSetTest, ServesTheReaderThatIsAboutToStallFirst) {
    plan(kA, {1, 2, 3, 4});
    EXPECT_EQ(nearest(), 1U);
    here = {1, 2, 3};
    plan(kB, {11, 12});
    EXPECT_THAT(fetch_all(), ElementsAre(11, 12, 4));
}

TEST_F(StreamSetTest, ReconsidersADroppedSample) {
    plan(kA, {1, 2, 3});
    fetch_all();
    here.erase(2);
    EXPECT_EQ(nearest(), std::nullopt);
    streams.rewind(2);
    EXPECT_EQ(nearest(), 2U);
}

TEST_F(StreamSetTest, ReconsidersAllSamplesAfterAMassDrop) {
    plan(kA, {1, 2, 3});
    fetch_all();
    here.clear();
    streams.rewind_all();
    EXPECT_THAT(fetch_all(), ElementsAre(1, 2, 3));
}

TEST_F(StreamSetTest, SearchStopsAfterTheAllowedStepsAndContinuesWhereItStopped) {
    plan(kA, {1, 2, 3, 4, 5, 6});
    here = {1, 2, 3, 4, 5};
    std::uint32_t steps = 3;
    const auto wants = [this](SampleIndex sample) { return !here.contains(sample); };
    EXPECT_FALSE(streams.nearest(wants, steps).has_value());
    EXPECT_EQ(steps, 0U);
    steps = 3;
    EXPECT_TRUE(streams.nearest(wants, steps).has_value());
}

TEST_F(StreamSetTest, FarthestReturnsThePrefetchedSampleNeededLast) {
    plan(kA, {1, 2, 3, 4});
    plan(kB, {11, 12});
    fetch_all();
    EXPECT_EQ(farthest(), 4U);
    here.erase(4);
    EXPECT_EQ(farthest(), 3U);
    here.erase(3);
    EXPECT_EQ(nearest(), 3U);
}

TEST_F(StreamSetTest, FarthestSkipsSamplesThatAnotherReaderNeedsSoon) {
    plan(kA, {1, 2, 3, 4});
    plan(kB, {4, 5});
    fetch_all();
    EXPECT_EQ(farthest(), 3U);
}

TEST_F(StreamSetTest, DistanceIsToTheNextNeed) {
    plan(kA, {1, 2, 3});
    plan(kB, {3, 9});
    EXPECT_EQ(streams.distance(3), 0U);
    streams.with_plan(kB)->plan->read(3);
    EXPECT_EQ(streams.distance(3), 2U);
    EXPECT_EQ(streams.distance(50), std::nullopt);
}

TEST_F(StreamSetTest, SamplesThatTheSearchHasPassedAreNear) {
    plan(kA, {1, 2, 3});
    here = {1, 2};
    EXPECT_EQ(nearest(), 3U);
    EXPECT_TRUE(streams.is_near(2));
    EXPECT_FALSE(streams.is_near(3));
}

TEST_F(StreamSetTest, TakenSampleIsNearAtOnce) {
    plan(kA, {1, 2, 3});
    std::uint32_t steps = 10;
    const auto candidate = streams.nearest([](SampleIndex) { return true; }, steps);
    ASSERT_TRUE(candidate.has_value());
    EXPECT_FALSE(streams.is_near(1));
    streams.take(*candidate);
    EXPECT_TRUE(streams.is_near(1));
    EXPECT_FALSE(streams.is_near(2));
}

TEST_F(StreamSetTest, LastConnectionOfAStreamRemovesItsPlan) {
    plan(kA, {1});
    streams.join(kA);
    EXPECT_FALSE(streams.leave(kA).has_value());
    EXPECT_TRUE(streams.leave(kA).has_value());
    EXPECT_EQ(streams.with_plan(kA), nullptr);
}

TEST_F(StreamSetTest, AnnouncesEachPositionInReachOnce) {
    plan(kA, {1, 2, 3, 4});
    std::vector<SampleIndex> announced;
    const auto announce = [&announced](SampleIndex sample) { announced.push_back(sample); };
    streams.read_ahead(2, announce);
    streams.read_ahead(2, announce);
    EXPECT_THAT(announced, ElementsAre(1, 2));
    streams.with_plan(kA)->plan->read(1);
    streams.read_ahead(2, announce);
    EXPECT_THAT(announced, ElementsAre(1, 2, 3));
}

TEST_F(StreamSetTest, PrefetchesTheNextEpochInOrder) {
    plan(kA, {1, 2, 3, 2, 4}, 2);
    EXPECT_THAT(fetch_all(), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(streams.distance(4), 4U);
    for (const SampleIndex sample : {1, 2, 3}) {
        streams.with_plan(kA)->plan->read(sample);
    }
    EXPECT_EQ(streams.distance(2), 0U) << "the next epoch begins with it";
    EXPECT_EQ(streams.distance(1), std::nullopt);
    EXPECT_EQ(farthest(), 4U);
}

TEST_F(StreamSetTest, ThisEpochComesBeforeAnotherReadersNextEpoch) {
    plan(kA, {1, 2, 3, 4}, 2);
    here = {1, 2};
    plan(kB, {11, 12, 13});
    EXPECT_THAT(fetch_all(), ElementsAre(11, 12, 3, 13, 4));
}

TEST_F(StreamSetTest, NextEpochSamplesStayNearInTheNextPlan) {
    plan(kA, {1, 2, 3, 4, 5}, 3);
    here = {1, 2};
    for (const SampleIndex sample : {3, 4}) {
        EXPECT_EQ(nearest(), sample);
        here.insert(sample);
    }
    EXPECT_EQ(nearest(), 5U);
    replace(kA, {3, 4, 5, 6});
    EXPECT_TRUE(streams.is_near(4));
    EXPECT_FALSE(streams.is_near(5));
    EXPECT_THAT(fetch_all(), ElementsAre(5, 6));
}

TEST_F(StreamSetTest, SamplesThatTheNextPlanOmitsAreNotNear) {
    plan(kA, {1, 3, 4, 5}, 3);
    fetch_all();
    replace(kA, {3, 5, 4, 6});
    EXPECT_TRUE(streams.is_near(3));
    EXPECT_FALSE(streams.is_near(5)) << "the order was not foreseen";
    EXPECT_THAT(fetch_all(), ElementsAre(6));
}

TEST_F(StreamSetTest, SamplesBeforeAPlansStartAreNear) {
    plan(kA, {1, 3, 4, 5}, 3);
    fetch_all();
    replace(kA, {3, 4, 5, 6}, 2);
    EXPECT_TRUE(streams.is_near(5));
    EXPECT_FALSE(streams.is_near(6));
    EXPECT_FALSE(streams.is_near(3)) << "it is read";
}

TEST_F(StreamSetTest, SamplesOfTheEpochAndOfTheNextPositionsAreDue) {
    plan(kA, {1, 2, 3, 4}, 2);
    EXPECT_TRUE(streams.is_due(2, 0));
    EXPECT_TRUE(streams.is_due(3, 3));
    EXPECT_FALSE(streams.is_due(4, 3));
    EXPECT_FALSE(streams.is_due(5, 100));
}

TEST_F(StreamSetTest, AnnouncesNextEpochPositionsOnce) {
    plan(kA, {1, 2, 3}, 1);
    std::vector<SampleIndex> announced;
    const auto announce = [&announced](SampleIndex sample) { announced.push_back(sample); };
    streams.read_ahead(9, announce);
    replace(kA, {3, 4});
    streams.read_ahead(9, announce);
    EXPECT_THAT(announced, ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace stoker::sidecar
