// The world's network between sidecars keeps what TCP and TLS promise, and no more.
#include "tests/world/virtual_network.h"

#include <gtest/gtest.h>

#include "tests/world/seed_tests.h"

namespace stoker::world {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kServerAddress = "pod-1:7331";

// One end of a connection: notes what it receives.
struct End final : sidecar::PeerEvents {
    void on_open(const sidecar::PeerIdentity& peer) override { identity = peer; }

    void on_frame(sidecar::PeerFrame frame) override { frames.push_back(std::move(frame)); }

    void on_drained() override { ++drained; }

    void on_end(const Error& error) override { ends.push_back(error); }

    std::optional<sidecar::PeerIdentity> identity;
    std::vector<sidecar::PeerFrame> frames;
    std::vector<Error> ends;
    int drained = 0;
    std::unique_ptr<sidecar::PeerChannel> channel;
};

// A client on node-0 and a server on node-1.
class VirtualNetworkTest : public ::testing::Test {
protected:
    VirtualNetworkTest() {
        schedule_.set_lag(milliseconds{1});
        set_leaf(client_, leaf());
        set_leaf(server_, leaf());
        EXPECT_EQ(
            server_
                .listen(
                    [this](std::unique_ptr<sidecar::PeerChannel> channel) -> sidecar::PeerEvents& {
                        there_.channel = std::move(channel);
                        return there_;
                    })
                .value(),
            kServerAddress);
    }

    static void set_leaf(VirtualPeers& peers, const VirtualLeaf& leaf) {
        peers.set_credentials({leaf.text(), "", "ca"});
    }

    static VirtualLeaf leaf() { return {"ca", {"team", {"one", "two"}}, hours{1}}; }

    void connect() { here_.channel = client_.connect(kServerAddress, here_); }

    void run_for(Duration time) {
        const TimePoint end = schedule_.now() + time;
        while (schedule_.step(end)) {
        }
    }

    void open() {
        connect();
        run_for(seconds{1});
        ASSERT_TRUE(here_.identity && there_.identity);
    }

    // A frame whose payload has `bytes` bytes that depend on `number`.
    static sidecar::PeerFrame frame(unsigned number, std::size_t bytes) {
        const auto payload =
            std::make_shared<std::vector<std::byte>>(bytes, static_cast<std::byte>(number));
        return {{static_cast<std::byte>(number)}, {*payload, payload}};
    }

    Schedule schedule_{first_seed()};
    VirtualNetwork network_{schedule_, {milliseconds{5}, 1e6}, first_seed()};
    Program client_process_{schedule_, "client"};
    std::optional<Program> server_process_{std::in_place, schedule_, "server"};
    VirtualPeers client_{network_, client_process_, "node-0", "pod-0:7331"};
    VirtualPeers server_{network_, *server_process_, "node-1", kServerAddress};
    End here_;
    End there_;
};

TEST_F(VirtualNetworkTest, BothEndsLearnWhoTheOtherIs) {
    open();
    EXPECT_EQ(here_.identity, leaf().identity);
    EXPECT_EQ(there_.identity, leaf().identity);
}

TEST_F(VirtualNetworkTest, FramesArriveInOrderAndAfterTheOpening) {
    connect();
    for (unsigned i = 0; i < 100; ++i) {
        here_.channel->send(frame(i, 1000));
    }
    run_for(seconds{5});
    ASSERT_EQ(there_.frames.size(), 100U);
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(there_.frames[i].head, std::vector{static_cast<std::byte>(i)});
        EXPECT_EQ(there_.frames[i].payload.bytes.size(), 1000U);
        EXPECT_EQ(there_.frames[i].payload.bytes[999], static_cast<std::byte>(i));
    }
    EXPECT_EQ(network_.payload_bytes("node-1"), Bytes{100'000});
    EXPECT_EQ(network_.payload_bytes("node-0"), Bytes{});
}

TEST_F(VirtualNetworkTest, FrameArrivesAfterTheTimeThatItsBytesTakeAtTheBandwidth) {
    open();
    here_.channel->send(frame(1, 200'000));  // 0.2 s at 1 MB/s
    run_for(milliseconds{190});
    EXPECT_EQ(there_.frames.size(), 0U);
    run_for(milliseconds{50});
    EXPECT_EQ(there_.frames.size(), 1U);
}

TEST_F(VirtualNetworkTest, StoppedReaderLeavesFramesUnsent) {
    open();
    server_process_->stop();
    for (unsigned i = 0; i < 40; ++i) {
        here_.channel->send(frame(i, 100'000));
    }
    run_for(seconds{60});
    EXPECT_TRUE(here_.ends.empty()) << "the kernel of the stopped process still answers";
    EXPECT_GT(here_.channel->unsent_bytes(), 3'000'000U);
    server_process_->go_on();
    run_for(seconds{60});
    EXPECT_EQ(there_.frames.size(), 40U);
    EXPECT_EQ(here_.channel->unsent_bytes(), 0U);
    EXPECT_EQ(here_.drained, 1);
}

TEST_F(VirtualNetworkTest, ShortCutDelaysFrames) {
    open();
    network_.cut("node-0", "node-1", seconds{10});
    here_.channel->send(frame(1, 1));
    there_.channel->send(frame(2, 1));
    run_for(seconds{9});
    EXPECT_EQ(there_.frames.size(), 0U);
    EXPECT_EQ(here_.frames.size(), 1U) << "the other direction is not cut";
    run_for(seconds{2});
    EXPECT_EQ(there_.frames.size(), 1U);
}

TEST_F(VirtualNetworkTest, LongCutEndsBothEnds) {
    open();
    network_.cut("node-0", "node-1", seconds{60});
    run_for(seconds{29});
    EXPECT_TRUE(here_.ends.empty() && there_.ends.empty());
    run_for(seconds{2});
    EXPECT_EQ(here_.ends.size(), 1U);
    EXPECT_EQ(there_.ends.size(), 1U);
}

TEST_F(VirtualNetworkTest, ConnectionOverACutLinkOpensWhenTheCutEnds) {
    network_.cut("node-1", "node-0", seconds{5});
    connect();
    run_for(seconds{4});
    EXPECT_FALSE(here_.identity);
    run_for(seconds{3});
    EXPECT_TRUE(here_.identity);
}

TEST_F(VirtualNetworkTest, HandshakeWithoutAnAnswerEnds) {
    network_.refuse(kServerAddress, VirtualNetwork::Refusal::kSilence, hours{1});
    connect();
    run_for(seconds{9});
    EXPECT_TRUE(here_.ends.empty());
    run_for(seconds{2});
    ASSERT_EQ(here_.ends.size(), 1U);
    EXPECT_EQ(here_.ends[0].code, ErrorCode::kUnavailable);
}

TEST_F(VirtualNetworkTest, ClosingAChannelEndsTheOtherSideAfterTheSentFrames) {
    open();
    here_.channel->send(frame(1, 1000));
    here_.channel.reset();
    run_for(seconds{1});
    EXPECT_EQ(there_.frames.size(), 1U);
    EXPECT_EQ(there_.ends.size(), 1U);
    EXPECT_TRUE(here_.ends.empty()) << "a destroyed channel delivers no event";
}

TEST_F(VirtualNetworkTest, PeerLearnsOfAKilledProcessAtOnceAndOfALostNodeLate) {
    open();
    server_.die(true);
    run_for(seconds{1});
    EXPECT_EQ(here_.ends.size(), 1U);
    VirtualPeers next{network_, *server_process_, "node-1", "pod-2:7331"};
    set_leaf(next, leaf());
    ASSERT_TRUE(next.listen([this](auto channel) -> sidecar::PeerEvents& {
        there_.channel = std::move(channel);
        return there_;
    }));
    here_.channel = client_.connect("pod-2:7331", here_);
    run_for(seconds{1});
    network_.lose_node("node-1");
    run_for(seconds{29});
    EXPECT_EQ(here_.ends.size(), 1U);
    run_for(seconds{2});
    EXPECT_EQ(here_.ends.size(), 2U);
}

TEST_F(VirtualNetworkTest, HalfOpenConnectionEndsAtOneEndFirst) {
    open();
    ASSERT_TRUE(network_.reset("node-0", true));
    run_for(seconds{1});
    EXPECT_EQ(here_.ends.size() + there_.ends.size(), 1U);
    here_.channel->send(frame(1, 1));
    there_.channel->send(frame(1, 1));
    run_for(seconds{28});
    EXPECT_EQ(here_.ends.size() + there_.ends.size(), 1U);
    EXPECT_EQ(here_.frames.size() + there_.frames.size(), 0U);
    run_for(seconds{2});
    EXPECT_EQ(here_.ends.size() + there_.ends.size(), 2U);
}

TEST_F(VirtualNetworkTest, ResetEndsBothEnds) {
    open();
    ASSERT_TRUE(network_.reset("node-1", false));
    run_for(seconds{1});
    EXPECT_EQ(here_.ends.size(), 1U);
    EXPECT_EQ(there_.ends.size(), 1U);
}

TEST_F(VirtualNetworkTest, CorruptNodeSendsOneWrongByte) {
    open();
    network_.corrupt("node-0", hours{1});
    here_.channel->send(frame(7, 100));
    run_for(seconds{1});
    ASSERT_EQ(there_.frames.size(), 1U);
    EXPECT_EQ(std::ranges::count(there_.frames[0].payload.bytes, std::byte{7}), 99);
}

TEST_F(VirtualNetworkTest, BadCertificatesAreRefused) {
    std::vector<VirtualLeaf> bad(2, leaf());
    bad[0].authority = "another";
    bad[1].until = {};
    for (const VirtualLeaf& one : bad) {
        set_leaf(client_, one);
        here_ = {};
        connect();
        run_for(seconds{1});
        ASSERT_EQ(here_.ends.size(), 1U);
        EXPECT_EQ(here_.ends[0].code, ErrorCode::kForbidden);
    }
    EXPECT_FALSE(there_.identity);
}

TEST_F(VirtualNetworkTest, NobodyListensAtAnotherAddress) {
    here_.channel = client_.connect("pod-9:7331", here_);
    run_for(seconds{1});
    EXPECT_EQ(here_.ends.size(), 1U);
}

}  // namespace
}  // namespace stoker::world
