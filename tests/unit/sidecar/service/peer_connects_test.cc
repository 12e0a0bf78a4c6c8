// Failures to connect to a peer, which are counted apart from other failures.
#include <gmock/gmock.h>

#include "sidecar/service/peer_link.h"
#include "tests/unit/sidecar/service/peer_fetches_fixture.h"

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

class PeerConnectsTest : public PeerFetchesTest {};

TEST_F(PeerConnectsTest, RefusalsDoNotCountAsFailuresToConnect) {
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    peer.refuse(theirs[0]);
    pass();
    ASSERT_TRUE(fetches.ask(theirs[1]));
    pass();
    hub.cut("b");
    pass();
    hub.heal("b");
    peer.greets = false;
    wait(seconds{1});
    EXPECT_FALSE(fetches.ask(theirs[2])) << "this begins a connection";
    pass();
    peer.channel->send({encode_peer_head(PeerRefusal{0, 0, PeerRefusalReason::kNotMember}), {}});
    pass();
    EXPECT_EQ(fetches.totals().failures, 3U);
    EXPECT_EQ(fetches.totals().connect_failures, 0U);
}

TEST_F(PeerConnectsTest, PeerThatCannotBeReachedFailsToConnect) {
    hub.cut("b");
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    EXPECT_EQ(fetches.totals().connect_failures, 1U);
    EXPECT_THAT(at_origin, ElementsAre(theirs[0]));
}

TEST_F(PeerConnectsTest, ConnectionThatEndsBeforeTheHelloFailsToConnect) {
    peer.greets = false;
    ASSERT_TRUE(fetches.ask(theirs[0]));
    pass();
    hub.cut("b");
    pass();
    EXPECT_EQ(fetches.totals().connect_failures, 1U);
}

}  // namespace
}  // namespace stoker::sidecar
