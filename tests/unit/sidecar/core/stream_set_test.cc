#include "sidecar/core/stream_set.h"

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;

constexpr StreamId kA{1};
constexpr StreamId kB{2};

class StreamSetTest : public testing::Test {
protected:
    void plan(StreamId stream, std::vector<SampleIndex> samples) {
        streams.join(stream);
        streams.replace_plan(stream, StreamPlan::make(1, std::move(samples), 0, 100).value());
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

    // Everything that is wanted, in the order in which it would be fetched.
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

TEST_F(StreamSetTest, TakesTurnsBetweenReadersThatAreEquallyFar) {
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

TEST_F(StreamSetTest, LooksAgainAtWhatWentAway) {
    plan(kA, {1, 2, 3});
    fetch_all();
    here.erase(2);
    EXPECT_EQ(nearest(), std::nullopt);
    streams.rewind(2);
    EXPECT_EQ(nearest(), 2U);
}

TEST_F(StreamSetTest, LooksAtEverythingAgainAfterAMassDrop) {
    plan(kA, {1, 2, 3});
    fetch_all();
    here.clear();
    streams.rewind_all();
    EXPECT_THAT(fetch_all(), ElementsAre(1, 2, 3));
}

TEST_F(StreamSetTest, GivesUpWhenItsStepsAreUsedUpAndGoesOnFromThere) {
    plan(kA, {1, 2, 3, 4, 5, 6});
    here = {1, 2, 3, 4, 5};
    std::uint32_t steps = 3;
    const auto wants = [this](SampleIndex sample) { return !here.contains(sample); };
    EXPECT_FALSE(streams.nearest(wants, steps).has_value());
    EXPECT_EQ(steps, 0U);
    steps = 3;
    EXPECT_TRUE(streams.nearest(wants, steps).has_value());
}

TEST_F(StreamSetTest, EvictsFromTheEndOfTheReaderThatIsServedFurthestAhead) {
    plan(kA, {1, 2, 3, 4});
    plan(kB, {11, 12});
    fetch_all();
    EXPECT_EQ(farthest(), 4U);
    here.erase(4);
    EXPECT_EQ(farthest(), 3U);
    here.erase(3);
    EXPECT_EQ(nearest(), 3U);
}

TEST_F(StreamSetTest, SparesWhatAnotherReaderNeedsSoon) {
    plan(kA, {1, 2, 3, 4});
    plan(kB, {4, 5});
    fetch_all();
    EXPECT_EQ(farthest(), 3U);
}

TEST_F(StreamSetTest, TellsHowFarTheNextNeedIs) {
    plan(kA, {1, 2, 3});
    plan(kB, {3, 9});
    EXPECT_EQ(streams.distance(3), 0U);
    streams.with_plan(kB)->plan->read(3);
    EXPECT_EQ(streams.distance(3), 2U);
    EXPECT_EQ(streams.distance(50), std::nullopt);
}

TEST_F(StreamSetTest, IsNearOnlyWhatTheCursorHasPassed) {
    plan(kA, {1, 2, 3});
    here = {1, 2};
    EXPECT_EQ(nearest(), 3U);
    EXPECT_TRUE(streams.is_near(2));
    EXPECT_FALSE(streams.is_near(3));
}

TEST_F(StreamSetTest, APlanGoesWithTheLastConnectionOfItsStream) {
    plan(kA, {1});
    streams.join(kA);
    EXPECT_FALSE(streams.leave(kA).has_value());
    EXPECT_TRUE(streams.leave(kA).has_value());
    EXPECT_EQ(streams.with_plan(kA), nullptr);
}

TEST_F(StreamSetTest, AnnouncesEachPositionOnceWithinItsDistance) {
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

}  // namespace
}  // namespace stoker::sidecar
