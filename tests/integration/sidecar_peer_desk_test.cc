// How a leader answers messages from peers that our own programs never send.
#include <future>
#include <optional>
#include <utility>

#include <gmock/gmock.h>

#include "common/base/crc32c.h"
#include "sidecar/peers/peer_messages.h"
#include "tests/integration/sidecar_peers_fixture.h"

namespace stoker::test {
namespace {

using sidecar::PeerAnswer;
using sidecar::PeerAsk;
using sidecar::PeerHello;
using sidecar::PeerMessage;
using sidecar::PeerRefusal;
using sidecar::PeerRefusalReason;

// A peer's end of a connection to node 0, on a loop that step() runs.
class RawPeer final : public sidecar::PeerEvents {
public:
    RawPeer(
        MemorySwitch& hub,
        const std::string& node,
        const std::string& address,
        const sidecar::PeerIdentity& identity)
        : network_(hub, loop_, node, identity),
          channel_(network_.connect(address, *this)) {}

    void send(const PeerMessage& message) {
        channel_->send({sidecar::encode_peer_head(message), {}});
    }

    // The next message; nullopt: the connection has ended, or no message arrives.
    std::optional<std::pair<PeerMessage, sidecar::HeldBytes>> receive(
        Duration limit = std::chrono::seconds{20}) {
        const TimePoint end = clock_.now() + limit;
        while (frames_.empty() && !has_ended && clock_.now() < end) {
            loop_.step(std::chrono::milliseconds{1});
        }
        if (frames_.empty()) {
            return std::nullopt;
        }
        sidecar::PeerFrame frame = std::move(frames_.front());
        frames_.erase(frames_.begin());
        return std::pair{sidecar::decode_peer_head(frame.head).value(), frame.payload};
    }

    // Whether the connection ends without another message.
    bool ends() { return !receive().has_value() && has_ended; }

    void on_open(const sidecar::PeerIdentity& /*peer*/) override {}

    void on_frame(sidecar::PeerFrame frame) override { frames_.push_back(std::move(frame)); }

    void on_end(const Error& /*error*/) override { has_ended = true; }

    bool has_ended = false;

private:
    SystemClock clock_;
    EventLoop loop_{clock_};
    MemoryNetwork network_;
    std::vector<sidecar::PeerFrame> frames_;
    std::unique_ptr<sidecar::PeerChannel> channel_;
};

// One leader in a group with a node "n1" that tests play.
class PeerDeskTest : public PeersTest {
protected:
    PeerDeskTest() {
        start();
        EXPECT_TRUE(
            eventually([&] { return status(0).manifest_state == control::ManifestState::kReady; }));
        join({{"n0", "n0:1", status(0).peer_generation}, {"n1", "n1:1", 7}});
        EXPECT_TRUE(eventually([&] { return status(0).peer_members == 2; }));
    }

    void join(std::vector<control::PeerMember> members) {
        sidecars[0]->ask([&](sidecar::Sidecar& sidecar) {
            sidecar.set_peers({"train", ++version, std::move(members)});
            return true;
        });
    }

    [[nodiscard]] PeerHello hello(std::uint64_t generation = 7) const {
        return {"train", data.manifest().revision(), "n1", generation};
    }

    std::unique_ptr<RawPeer> connect_raw(
        const sidecar::PeerIdentity& identity = {"team", {"train"}}) {
        return std::make_unique<RawPeer>(hub, "n1", "n0:1", identity);
    }

    std::unique_ptr<RawPeer> welcome() {
        auto peer = connect_raw();
        peer->send(hello());
        const auto answer = peer->receive();
        EXPECT_TRUE(answer && std::holds_alternative<PeerHello>(answer->first));
        return peer;
    }

    static std::optional<PeerRefusal> refusal_of(RawPeer& peer) {
        const auto answer = peer.receive();
        return answer && std::holds_alternative<PeerRefusal>(answer->first)
                   ? std::optional{std::get<PeerRefusal>(answer->first)}
                   : std::nullopt;
    }
};

TEST_F(PeerDeskTest, AnswersWithTheSampleAndItsChecksum) {
    const auto peer = welcome();
    const auto own = static_cast<std::uint32_t>(owned_by(0, 2).front());
    peer->send(PeerAsk{17, {own}});
    const auto answer = peer->receive();
    ASSERT_TRUE(answer.has_value());
    const auto payload = data.payload(domain::SampleId{own});
    EXPECT_EQ(answer->first, (PeerMessage{PeerAnswer{17, own, crc32c(payload)}}));
    EXPECT_TRUE(std::ranges::equal(answer->second.bytes, payload));
}

TEST_F(PeerDeskTest, ASampleOfAnotherOwnerIsNotFetched) {
    const auto peer = welcome();
    const auto foreign = static_cast<std::uint32_t>(owned_by(1, 2).front());
    peer->send(PeerAsk{17, {foreign}});
    EXPECT_EQ(refusal_of(*peer), (PeerRefusal{17, foreign, PeerRefusalReason::kNotMine}));
    EXPECT_EQ(origin->fetches(), 0U);
}

TEST_F(PeerDeskTest, ASampleAskedForIfItIsThereIsNotFetched) {
    const auto peer = welcome();
    const auto own = static_cast<std::uint32_t>(owned_by(0, 2).front());
    peer->send(PeerAsk{17, {own}, true});
    EXPECT_EQ(refusal_of(*peer), (PeerRefusal{17, own, PeerRefusalReason::kNotMine}));
    EXPECT_EQ(origin->fetches(), 0U);
    peer->send(PeerAsk{18, {own}});
    ASSERT_TRUE(peer->receive().has_value());
    peer->send(PeerAsk{19, {own}, true});
    const auto answer = peer->receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(
        answer->first,
        (PeerMessage{PeerAnswer{19, own, crc32c(data.payload(domain::SampleId{own}))}}));
}

TEST_F(PeerDeskTest, SidecarsOfOtherNamespacesAndDatasetsAreRefused) {
    const auto other_namespace = connect_raw({"other", {"train"}});
    EXPECT_EQ(refusal_of(*other_namespace)->reason, PeerRefusalReason::kNotMember);
    EXPECT_TRUE(other_namespace->ends());
    const auto other_dataset = connect_raw({"team", {"other"}});
    other_dataset->send(hello());
    EXPECT_EQ(refusal_of(*other_dataset)->reason, PeerRefusalReason::kNotMember);
    EXPECT_TRUE(other_dataset->ends());
}

TEST_F(PeerDeskTest, FormerLeadersOtherRevisionsAndOtherDatasetsAreRefused) {
    const auto old_lead = connect_raw();
    old_lead->send(hello(6));
    EXPECT_EQ(refusal_of(*old_lead)->reason, PeerRefusalReason::kNotMember);
    EXPECT_TRUE(old_lead->ends());
    const auto other = connect_raw();
    other->send(PeerHello{"train", domain::RevisionId{1}, "n1", 7});
    EXPECT_EQ(refusal_of(*other)->reason, PeerRefusalReason::kOtherRevision);
    EXPECT_TRUE(other->ends());
    const auto unknown = connect_raw();
    unknown->send(PeerHello{"nobody", data.manifest().revision(), "n1", 7});
    EXPECT_EQ(refusal_of(*unknown)->reason, PeerRefusalReason::kNotMember);
}

TEST_F(PeerDeskTest, ANewLeaderIsAcceptedBeforeTheOperatorReportsIt) {
    const auto peer = connect_raw();
    peer->send(hello(8));
    EXPECT_TRUE(std::holds_alternative<PeerHello>(peer->receive()->first));
    join({{"n0", "n0:1", status(0).peer_generation}, {"n1", "n1:1", 9}});
    EXPECT_EQ(refusal_of(*peer)->reason, PeerRefusalReason::kNotMember) << "there is a newer one";
}

TEST_F(PeerDeskTest, ANewNodesHelloWaitsUntilItIsAMember) {
    const auto peer = connect_raw();
    peer->send(PeerHello{"train", data.manifest().revision(), "n2", 1});
    EXPECT_FALSE(peer->receive(std::chrono::milliseconds{100}).has_value());
    EXPECT_FALSE(peer->has_ended);
    join({{"n0", "n0:1", status(0).peer_generation}, {"n2", "n2:1", 1}});
    EXPECT_TRUE(std::holds_alternative<PeerHello>(peer->receive()->first));
}

TEST_F(PeerDeskTest, BreakingTheProtocolEndsTheConnection) {
    const auto early = connect_raw();
    early->send(PeerAsk{1, {0}});
    EXPECT_TRUE(early->ends());
    const auto unknown_sample = welcome();
    unknown_sample->send(PeerAsk{1, {200}});
    EXPECT_EQ(refusal_of(*unknown_sample)->request_id, 0U);
    EXPECT_TRUE(unknown_sample->ends());
    const auto greedy = welcome();
    greedy->send(PeerAsk{1, std::vector<std::uint32_t>(sidecar::PeerDesk::kAsksMax + 1)});
    EXPECT_EQ(refusal_of(*greedy)->request_id, 0U);
    EXPECT_TRUE(greedy->ends());
    EXPECT_EQ(origin->fetches(), 0U);
}

TEST_F(PeerDeskTest, UnreadRefusalsEndTheConnection) {
    const auto peer = welcome();
    const auto foreign = static_cast<std::uint32_t>(owned_by(1, 2).front());
    hub.stall("n0");
    constexpr std::size_t kFrames = 100;
    for (std::size_t i = 0; i < kFrames; ++i) {
        peer->send(PeerAsk{i + 1, std::vector<std::uint32_t>(64, foreign)});
    }
    EXPECT_TRUE(peer->ends());
}

TEST_F(PeerDeskTest, LossesOfUnknownJobsChangeNothing) {
    const auto peer = welcome();
    for (int i = 0; i < 1000; ++i) {
        peer->send(sidecar::PeerLosses{"job-" + std::to_string(i), 0, {{{0, 1}, {1, 255}}}});
    }
    peer->send(PeerAsk{17, {static_cast<std::uint32_t>(owned_by(0, 2).front())}});
    EXPECT_TRUE(std::holds_alternative<PeerAnswer>(peer->receive()->first));
    peer->send(sidecar::PeerLosses{"j", 0, {{{200}, {1}}}});
    EXPECT_EQ(refusal_of(*peer)->request_id, 0U) << "no such sample";
    EXPECT_TRUE(peer->ends());
}

// A peer disconnects with requests in flight: their samples are released.
TEST_F(PeerDeskTest, SamplesOfADisconnectedPeerAreReleased) {
    {
        const auto peer = welcome();
        std::vector<std::uint32_t> own;
        for (const auto id : owned_by(0, 2)) {
            own.push_back(static_cast<std::uint32_t>(id));
        }
        origin->hold();
        peer->send(PeerAsk{1, own});
        ASSERT_TRUE(eventually([&] { return origin->fetches() > 0; }));
    }
    origin->release();
    ASSERT_TRUE(eventually([&] { return status(0).bytes.in_flight_samples == 0; }));
    sidecars[0]->ask([](sidecar::Sidecar& sidecar) {
        sidecar.set_grant("train", {Bytes::zero(), std::nullopt}, {});
        return true;
    });
    EXPECT_TRUE(eventually([&] {
        const auto now = status(0).bytes;
        return now.resident == Bytes::zero() && now.doomed == Bytes::zero();
    })) << "held samples would stay";
}

}  // namespace
}  // namespace stoker::test
