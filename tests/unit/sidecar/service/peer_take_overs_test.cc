// This node's own samples that it requests from their former owners.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <gmock/gmock.h>

#include "sidecar/core/take_overs.h"
#include "tests/unit/sidecar/service/peer_fetches_fixture.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(PeerFetchesTest, OwnSamplesAreAskedOfTheFormerOwnerOnlyIfItHasThem) {
    take_over(ours[0]);
    ASSERT_TRUE(fetches.ask(theirs[0]));
    take_over(ours[1]);
    pass();
    ASSERT_THAT(peer.asks, SizeIs(2));
    EXPECT_EQ(peer.asks[0].samples, (std::vector<SampleIndex>{theirs[0]}));
    EXPECT_FALSE(peer.asks[0].only_if_there);
    EXPECT_EQ(peer.asks[1].samples, (std::vector<SampleIndex>{ours[0], ours[1]}));
    EXPECT_TRUE(peer.asks[1].only_if_there);
    peer.answer(ours[0]);
    peer.refuse(ours[1]);
    pass();
    fetches.note_stored(ours[0], "b", Bytes{10});
    EXPECT_THAT(arrived, ElementsAre(ours[0]));
    EXPECT_THAT(at_origin, ElementsAre(ours[1]));
    EXPECT_EQ(fetches.totals().samples, 1U);
    EXPECT_EQ(fetches.totals().taken_over, 1U);
    EXPECT_EQ(fetches.totals().take_overs_lacked, 1U);
    EXPECT_EQ(fetches.totals().take_overs_failed + fetches.totals().failures, 0U);
}

TEST_F(PeerFetchesTest, APeerThatLacksOurSamplesIsAskedForFew) {
    std::ptrdiff_t asked = 0;
    while (fetches.takes_over(ours[asked])) {
        ASSERT_TRUE(fetches.ask(ours[asked]));
        pass();
        peer.refuse(ours[asked++]);
        pass();
    }
    EXPECT_EQ(asked, static_cast<std::size_t>(TakeOvers::kLacks));
    EXPECT_THAT(at_origin, SizeIs(asked));
    set_group({"a", "c", "b"});
    const auto still_ours = std::find_if(ours.begin() + asked, ours.end(), [this](auto sample) {
        return placement->is_own(sample);
    });
    ASSERT_NE(still_ours, ours.end());
    EXPECT_TRUE(fetches.takes_over(*still_ours)) << "the next node in the order of hashes";
}

TEST_F(PeerFetchesTest, ABrokenConnectionSaysNothingAboutTheSamplesOfAPeer) {
    for (std::size_t i = 0; i < 2U * TakeOvers::kLacks; ++i) {
        take_over(ours[i]);
    }
    pass();
    peer.channel.reset();
    pass();
    EXPECT_THAT(at_origin, SizeIs(2U * TakeOvers::kLacks));
    EXPECT_EQ(fetches.totals().take_overs_failed, 2U * TakeOvers::kLacks);
    EXPECT_EQ(fetches.totals().failures, 0U);
    EXPECT_FALSE(fetches.takes_over(ours[0])) << "it rests";
    wait(seconds{1});
    EXPECT_FALSE(fetches.takes_over(ours[0])) << "this begins a connection";
    pass();
    EXPECT_TRUE(fetches.takes_over(ours[0])) << "it is connected";
}

TEST_F(PeerFetchesTest, AConnectionForATakeOverHasATimeLimit) {
    hub.cut("b");
    take_over(ours[0]);
    wait(PeerFetches::kConnectMax + seconds{1});
    ASSERT_EQ(fetches.totals().connect_failures, 1U);
    EXPECT_FALSE(fetches.takes_over(ours[0])) << "this begins the next one";
    wait(PeerFetches::kConnectMax + seconds{1});
    EXPECT_EQ(fetches.totals().connect_failures, 2U);
}

TEST_F(PeerFetchesTest, APeerThatSendsWrongBytesOfOurSamplesIsPassedOver) {
    for (int i = 0; i < TakeOvers::kLacks; ++i) {
        wait(PeerFetches::kQuarantine + seconds{1});
        (void)fetches.takes_over(ours[0]);  // may begin a connection
        pass();
        take_over(ours[0]);
        pass();
        peer.answer(ours[0]);
        pass();
        fetches.on_wrong_bytes(ours[0], "b");
    }
    wait(PeerFetches::kQuarantine + seconds{1});
    (void)fetches.takes_over(ours[0]);
    pass();
    EXPECT_FALSE(fetches.takes_over(ours[0]));
}

// Other nodes wait for us meanwhile, and a former owner has only to look the sample up.
TEST_F(PeerFetchesTest, AMuteFormerOwnerIsHedgedEarly) {
    take_over(ours[0]);
    ASSERT_TRUE(fetches.ask(theirs[0]));
    wait(PeerFetches::kTakeOverPatience + milliseconds{100});
    EXPECT_THAT(at_origin, ElementsAre(ours[0]));
    EXPECT_EQ(fetches.totals().take_overs_failed, 1U);
    EXPECT_EQ(fetches.totals().hedges, 0U);
    peer.answer(ours[0]);
    pass();
    EXPECT_THAT(arrived, ElementsAre(ours[0]));
}

TEST_F(PeerFetchesTest, AFormerOwnerThatSendsOtherSamplesGetsMoreTime) {
    take_over(ours[0]);
    for (std::size_t i = 0; i < 5; ++i) {
        ASSERT_TRUE(fetches.ask(theirs[i]));
        wait(PeerFetches::kTakeOverPatience / 2);
        peer.answer(theirs[i]);
        pass();
    }
    EXPECT_THAT(at_origin, IsEmpty());
}

TEST_F(PeerFetchesTest, ANodeThatAsksForASampleIsNotAskedForIt) {
    fetches.set_asker("b", ours[0]);
    EXPECT_FALSE(fetches.takes_over(ours[0]));
    EXPECT_TRUE(fetches.takes_over(ours[1]));
}

TEST_F(PeerFetchesTest, ANewGroupLeavesTakeOversInFlight) {
    warm_up();
    take_over(ours[0]);
    set_group({"a", "b"});
    pass();
    EXPECT_THAT(at_origin, IsEmpty());
    peer.answer(ours[0]);
    pass();
    EXPECT_THAT(arrived, ElementsAre(ours[0]));
}

}  // namespace
}  // namespace stoker::sidecar
