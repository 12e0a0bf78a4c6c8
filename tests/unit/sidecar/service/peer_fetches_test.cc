#include "sidecar/service/peer_fetches.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/sidecar/service/peer_fetches_fixture.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::MemoryNetwork;
using test::MemorySwitch;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(PeerFetchesTest, OneFrameAsksForAllSamplesOfALoopIteration) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(fetches.ask(theirs[i]));
    }
    pass();
    ASSERT_THAT(peer.asks, SizeIs(1));
    EXPECT_THAT(peer.asked(), ElementsAre(theirs[0], theirs[1], theirs[2]));
    peer.answer(theirs[1]);
    peer.answer(theirs[0]);
    pass();
    EXPECT_THAT(arrived, ElementsAre(theirs[1], theirs[0]));
    EXPECT_THAT(at_origin, IsEmpty());
}

PeerLosses losses_of(std::uint64_t epoch) {
    return {"job", epoch, {{{1}, {1}}}};
}

TEST_F(PeerFetchesTest, LossesWaitForTheConnectionThatTheyOpen) {
    for (std::uint64_t epoch = 0; epoch < PeerFetches::kToldMax + 5; ++epoch) {
        fetches.tell_all(losses_of(epoch));
    }
    pass();
    EXPECT_EQ(peer.connections, 1);
    ASSERT_THAT(peer.told, SizeIs(PeerFetches::kToldMax)) << "more than so many do not wait";
    EXPECT_EQ(peer.told.front(), 0U);
    fetches.tell_all(losses_of(100));
    pass();
    EXPECT_EQ(peer.told.back(), 100U);
}

TEST_F(PeerFetchesTest, LossesForAQuarantinedPeerAreDropped) {
    warm_up();
    fetches.on_wrong_bytes(theirs[0], "b");
    fetches.tell_all(losses_of(1));
    wait(PeerFetches::kQuarantine);
    pass();
    EXPECT_THAT(peer.told, IsEmpty());
    fetches.tell_all(losses_of(2));
    pass();
    EXPECT_THAT(peer.told, ElementsAre(2));
}

TEST_F(PeerFetchesTest, ALateSampleIsHedgedAtTheOriginAndThePeersAnswerStillCounts) {
    warm_up();
    ASSERT_TRUE(fetches.ask(theirs[40]));
    wait(Patience::kLeast - milliseconds{50});
    EXPECT_THAT(at_origin, IsEmpty());
    wait(milliseconds{150});
    EXPECT_THAT(at_origin, ElementsAre(theirs[40]));
    EXPECT_EQ(fetches.totals().hedges, 1U);
    peer.answer(theirs[40]);
    pass();
    EXPECT_THAT(arrived, ElementsAre(theirs[40]));
    wait(seconds{5});
    EXPECT_THAT(at_origin, SizeIs(1)) << "once";
}

// The wait before a hedge follows the peer's answer times: an always slow peer is given longer.
TEST_F(PeerFetchesTest, AnAlwaysSlowPeerIsHedgedLater) {
    for (std::size_t i = 0; i < 32; ++i) {
        ASSERT_TRUE(fetches.ask(theirs[i]));
        wait(seconds{1});
        peer.answer(theirs[i]);
        pass();
    }
    ASSERT_TRUE(fetches.ask(theirs[40]));
    wait(seconds{4});
    EXPECT_THAT(at_origin, IsEmpty());
    wait(seconds{1});
    EXPECT_THAT(at_origin, ElementsAre(theirs[40]));
}

TEST_F(PeerFetchesTest, ReportsASlowSampleOnce) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(PeerFetches::kSlow);
    EXPECT_THAT(slow, IsEmpty());
    wait(seconds{3});
    EXPECT_THAT(slow, ElementsAre(theirs[0]));
    EXPECT_THAT(at_origin, IsEmpty());
}

// Without this rule each slow sample of a batch keeps its slot for a second, one after the other
// (seed 70245 of tests/world).
TEST_F(PeerFetchesTest, WhileASampleOfAPeerIsSlowItsNextSampleCountsAsSlowAtOnce) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(PeerFetches::kSlow + milliseconds{100});
    ASSERT_TRUE(fetches.ask(theirs[1]));
    wait(milliseconds{100});
    EXPECT_THAT(slow, ElementsAre(theirs[0], theirs[1]));
    peer.answer(theirs[0]);
    peer.answer(theirs[1]);
    pass();
    ASSERT_TRUE(fetches.ask(theirs[2]));
    wait(milliseconds{100});
    EXPECT_THAT(slow, SizeIs(2));
}

TEST_F(PeerFetchesTest, HedgesAfterTheLongestPatienceIfNoAnswerTimeIsKnown) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(Patience::kMost - milliseconds{100});
    EXPECT_THAT(at_origin, IsEmpty());
    wait(milliseconds{300});
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
}

TEST_F(PeerFetchesTest, AStalledPeerGetsOneSampleASecond) {
    warm_up();
    for (std::size_t i = 0; i < PeerFetches::kStalledMin; ++i) {
        ASSERT_TRUE(fetches.ask(theirs[40 + i]));
    }
    wait(milliseconds{700});
    EXPECT_THAT(at_origin, SizeIs(PeerFetches::kStalledMin));
    wait(seconds{1});
    EXPECT_TRUE(fetches.ask(theirs[60]));
    EXPECT_FALSE(fetches.ask(theirs[61]));
    EXPECT_EQ(fetches.totals().failures, 0U);
    for (std::size_t i = 0; i < PeerFetches::kStalledMin; ++i) {
        peer.answer(theirs[40 + i]);
    }
    pass();
    EXPECT_TRUE(fetches.ask(theirs[61])) << "it answers again";
}

TEST_F(PeerFetchesTest, ARefusedSampleGoesToTheOrigin) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    peer.refuse(theirs[0]);
    pass();
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
    EXPECT_EQ(fetches.totals().failures, 1U);
    EXPECT_TRUE(fetches.ask(theirs[1])) << "the connection stays";
}

TEST_F(PeerFetchesTest, SamplesOfAFailedPeerGoToTheOriginAtOnce) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    hub.cut("b");
    pass();
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
    EXPECT_FALSE(fetches.ask(theirs[1])) << "it rests";
    wait(seconds{1});
    EXPECT_FALSE(fetches.ask(theirs[1])) << "it is not connected yet";
    pass();
    hub.heal("b");
    wait(seconds{2});
    EXPECT_FALSE(fetches.ask(theirs[1])) << "this begins a connection";
    pass();
    EXPECT_TRUE(fetches.ask(theirs[1])) << "it is connected";
    EXPECT_EQ(fetches.totals().failures, 4U);
    EXPECT_EQ(fetches.totals().connect_failures, 1U) << "the first connection was greeted";
}

TEST_F(PeerFetchesTest, APauseWithoutRequestsDoesNotCountAsSilence) {
    warm_up();
    wait(2 * PeerFetches::kSilenceMax);
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(milliseconds{200});
    peer.answer(theirs[0]);
    pass();
    EXPECT_THAT(arrived, ElementsAre(theirs[0]));
    EXPECT_THAT(at_origin, IsEmpty());
    EXPECT_EQ(peer.connections, 1);
}

TEST_F(PeerFetchesTest, APeerThatAnswersNothingLosesItsConnection) {
    warm_up();
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(PeerFetches::kSilenceMax + seconds{1});
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
    EXPECT_FALSE(fetches.ask(theirs[1])) << "the connection is gone";
}

TEST_F(PeerFetchesTest, APeerWithWrongBytesIsQuarantined) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    fetches.on_wrong_bytes(theirs[0], "b");
    pass();
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
    wait(PeerFetches::kQuarantine - seconds{1});
    EXPECT_FALSE(fetches.ask(theirs[1]));
    pass();
    EXPECT_EQ(peer.connections, 1);
    wait(seconds{2});
    EXPECT_FALSE(fetches.ask(theirs[1]));
    pass();
    EXPECT_EQ(peer.connections, 2);
}

TEST_F(PeerFetchesTest, AnAnswerThatNobodyAskedForEndsTheConnection) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    peer.answer(theirs[1]);
    pass();
    EXPECT_THAT(arrived, IsEmpty());
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
    EXPECT_EQ(peer.channel, nullptr);
}

TEST_F(PeerFetchesTest, ALeaderOfAnOlderGenerationIsNotAsked) {
    set_group({"a", "b"}, 6);
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    EXPECT_THAT(peer.asks, IsEmpty());
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
}

TEST_F(PeerFetchesTest, WaitsForAPeerThatHasNotGreetedYet) {
    peer.greets = false;
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(seconds{5});
    EXPECT_THAT(peer.asks, IsEmpty());
    peer.channel->send({encode_peer_head(hello("b", 5)), {}});
    pass();
    EXPECT_THAT(peer.asked(), ElementsAre(theirs[0]));
    EXPECT_THAT(at_origin, IsEmpty());
}

TEST_F(PeerFetchesTest, SamplesInFlightAreBounded) {
    for (std::size_t i = 0; i < PeerFetches::kInFlightMax + 10; ++i) {
        ASSERT_TRUE(fetches.ask(theirs[i]));
    }
    pass();
    EXPECT_THAT(peer.asked(), SizeIs(PeerFetches::kInFlightMax));
    peer.answer(theirs[0]);
    pass();
    EXPECT_THAT(peer.asked(), SizeIs(PeerFetches::kInFlightMax + 1));
}

// Without this rule two nodes with different groups could wait for each other.
TEST_F(PeerFetchesTest, SamplesWhoseOwnerChangesGoToTheOrigin) {
    for (std::size_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(fetches.ask(theirs[i]));
    }
    pass();
    set_group({"a", "b", "c"});
    std::vector<SampleIndex> moved;
    std::copy_if(
        theirs.begin(), theirs.begin() + 20, std::back_inserter(moved), [this](auto sample) {
            return placement->owner(sample) != 1;
        });
    EXPECT_THAT(moved, ::testing::Not(IsEmpty()));
    std::ranges::sort(at_origin);
    EXPECT_EQ(at_origin, moved);
    EXPECT_EQ(peer.connections, 1) << "the peer itself stays";
}

// The link to the peer is destroyed, so nothing else would send its samples to the origin.
TEST_F(PeerFetchesTest, SamplesOfAPeerThatLeavesGoToTheOrigin) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    ASSERT_TRUE(fetches.ask(theirs[1])) << "asked, but not sent yet";
    set_group({"a"});
    EXPECT_THAT(at_origin, ElementsAre(theirs[0], theirs[1]));
    EXPECT_EQ(fetches.totals().failures, 2U);
    pass();
    EXPECT_EQ(peer.channel, nullptr);
    EXPECT_FALSE(fetches.ask(theirs[2])) << "the sample is our own now";
}

// The node still owns the samples, but its new leader does not know the earlier requests.
TEST_F(PeerFetchesTest, SamplesAskedOfAnEarlierLeaderGoToTheOrigin) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    set_group({"a", "b"}, 6);
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
}

TEST(PeerFetchesIdentity, APeerOfAnotherDatasetIsNotAsked) {
    stoker::testing::ManualClock clock;
    EventLoop loop{clock};
    MemorySwitch hub;
    MemoryNetwork here{hub, loop, "a", {"team", {"uid"}}};
    for (const PeerIdentity& stranger :
         {PeerIdentity{"other", {"uid"}}, PeerIdentity{"team", {"other"}}}) {
        MemoryNetwork there{hub, loop, "b", stranger};
        ScriptedPeer peer{{"uid", domain::RevisionId{9}, "b", 5}};
        ASSERT_TRUE(there.listen(
            [&peer](auto channel) -> PeerEvents& { return peer.accept(std::move(channel)); }));
        std::vector<SampleIndex> at_origin;
        PeerFetches fetches{
            loop,
            here,
            {"team", {"uid", domain::RevisionId{9}, "a", 3}},
            {{}, {}, [&](SampleIndex sample) { at_origin.push_back(sample); }}};
        const std::vector<std::uint64_t> sizes(1, 10);
        const std::vector<std::string> nodes{"a", "b"};
        // Our node is the one that does not own the dataset's only sample.
        const auto key = [](SampleIndex) -> std::string_view { return "x"; };
        const Placement probe{SampleSizes{sizes}, key, nodes, 0};
        const auto placement =
            std::make_shared<Placement>(SampleSizes{sizes}, key, nodes, 1 - probe.owner(0));
        fetches.set_group(placement, {{"b", "b:1", 5}, {"b", "b:1", 5}});
        ASSERT_TRUE(fetches.ask(0));
        for (int i = 0; i < 20; ++i) {
            loop.step(Duration{});
        }
        EXPECT_THAT(at_origin, ElementsAre(0U));
        EXPECT_THAT(peer.asks, IsEmpty());
    }
}

}  // namespace
}  // namespace stoker::sidecar
