#include <gtest/gtest.h>
#include <sys/resource.h>

#include "sidecar/peers/tcp.h"
#include "sidecar/peers/tls_network.h"
#include "tests/unit/sidecar/peers/peers_world.h"
#include "tests/unit/sidecar/peers/raw_peer.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::frame_of;
using test::PeerNode;
using test::RawPeer;

TlsNetwork::Options with_limits(void (*change)(NetworkLimits&)) {
    TlsNetwork::Options options = PeerNode::any_payloads();
    change(options.limits);
    return options;
}

using TlsNetworkLimitsTest = test::PeersTest;

TEST_F(TlsNetworkLimitsTest, SilentHandshakeEnds) {
    const auto options =
        with_limits([](NetworkLimits& limits) { limits.handshake_max = milliseconds{200}; });
    PeerNode node{loop, options};
    node.network->set_credentials(ours());
    RawPeer raw{node.listen()};
    EXPECT_TRUE(raw.is_closed_by_peer());

    // The kernel accepts the connection, and nobody answers.
    const UniqueFd mute = listen_tcp("127.0.0.1", 0).value();
    const auto peer = node.connect(local_address(mute.get()).value());
    ASSERT_TRUE(until([&] { return peer->end.has_value(); }));
    EXPECT_EQ(peer->end_code(), "deadline_exceeded");
}

TEST_F(TlsNetworkLimitsTest, CutLinkEndsAnIdleConnection) {
    PeerNode node{
        loop, with_limits([](NetworkLimits& limits) { limits.silence_max = seconds{3}; })};
    node.network->set_credentials(ours());
    RawPeer raw{node.listen()};
    ASSERT_TRUE(raw.shake_hands({.credentials = ours()}));
    ASSERT_TRUE(until([&] { return !node.guests.empty(); }));
    raw.cut_link();
    ASSERT_TRUE(until([&] { return node.guests[0]->end.has_value(); }));
    EXPECT_EQ(node.guests[0]->end_code(), "unavailable");
}

TEST_F(TlsNetworkLimitsTest, CutLinkEndsASendingConnection) {
    PeerNode node{
        loop, with_limits([](NetworkLimits& limits) { limits.silence_max = seconds{3}; })};
    node.network->set_credentials(ours());
    RawPeer raw{node.listen()};
    ASSERT_TRUE(raw.shake_hands({.credentials = ours()}));
    ASSERT_TRUE(until([&] { return !node.guests.empty(); }));
    raw.cut_link();
    node.guests[0]->channel->send(frame_of(1, 1000, 1));
    ASSERT_TRUE(until([&] { return node.guests[0]->end.has_value(); }));
    EXPECT_EQ(node.guests[0]->end_code(), "unavailable");
}

TEST_F(TlsNetworkLimitsTest, SlowReaderStopsTheSenderWithinItsBound) {
    EventLoop slow_loop{clock};
    const auto options =
        with_limits([](NetworkLimits& limits) { limits.waiting_max = std::size_t{1} << 20U; });
    PeerNode slow{slow_loop, options};
    slow.network->set_credentials(ours());
    PeerNode fast{loop};
    fast.network->set_credentials(ours());
    const auto peer = fast.connect(slow.listen());
    ASSERT_TRUE(until([&] {
        slow_loop.step({});
        return peer->identity && !slow.guests.empty() && slow.guests[0]->identity;
    }));

    constexpr int kFrames = 1000;
    const PeerFrame frame = frame_of(8, 100'000, 1);
    const std::size_t all = kFrames * (8 + frame.head.size() + frame.payload.bytes.size());
    for (int i = 0; i < kFrames; ++i) {
        peer->channel->send(frame);
    }
    // The slow side's loop does not run. Steps until the kernel's buffers are full, so that the
    // number of unsent bytes does not change any more.
    std::size_t unsent = all;
    for (int still = 0; still < 20;) {
        loop.step(milliseconds{20});
        still = std::exchange(unsent, peer->channel->unsent_bytes()) == unsent ? still + 1 : 0;
    }
    EXPECT_GT(unsent, all / 2);
    EXPECT_EQ(peer->drained, 0);

    ASSERT_TRUE(until([&] {
        slow_loop.step({});
        return slow.guests[0]->frames.size() == kFrames;
    }));
    EXPECT_TRUE(test::same(slow.guests[0]->frames.back(), frame));
    EXPECT_TRUE(until([&] { return peer->channel->unsent_bytes() == 0; }));
    EXPECT_EQ(peer->drained, 1);
}

TEST_F(TlsNetworkLimitsTest, ThousandStrangersLeaveRoomForAPeer) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    PeerNode node{loop, with_limits([](NetworkLimits& limits) { limits.accepted_max = 256; })};
    node.network->set_credentials(ours());
    const std::string address = node.listen();
    std::vector<std::unique_ptr<RawPeer>> strangers;
    for (int i = 0; i < 1000; ++i) {
        strangers.push_back(std::make_unique<RawPeer>(address));
    }
    PeerNode other{loop};
    other.network->set_credentials(ours());
    const auto peer = other.connect(address);
    ASSERT_TRUE(until([&] { return peer->identity && !node.guests.empty(); }));
    EXPECT_EQ(node.network->counts().accepted, 1001U);
    EXPECT_GE(node.network->counts().crowded_out, 1001U - 256U);
    EXPECT_TRUE(strangers[0]->is_closed_by_peer()) << "the oldest ones go";
    EXPECT_TRUE(strangers[700]->is_closed_by_peer());
}

TEST_F(TlsNetworkLimitsTest, APeerThatConnectsToUsMaySendOnlySmallPayloads) {
    PeerNode node{loop, {.host = "127.0.0.1"}};
    node.network->set_credentials(ours());
    PeerNode other{loop};
    other.network->set_credentials(ours());
    const auto asker = other.connect(node.listen());
    ASSERT_TRUE(until([&] { return asker->identity && node.guests.size() == 1; }));
    const std::vector<std::byte> payload(std::size_t{65} << 10U);
    asker->channel->send({{std::byte{1}}, {payload, nullptr}});
    EXPECT_TRUE(until([&] { return node.guests[0]->end.has_value(); }));
    EXPECT_TRUE(node.guests[0]->frames.empty());
}

TEST_F(TlsNetworkLimitsTest, OpenConnectionsAreKeptWhenThereIsNoRoom) {
    PeerNode node{loop, with_limits([](NetworkLimits& limits) { limits.accepted_max = 2; })};
    node.network->set_credentials(ours());
    const std::string address = node.listen();
    PeerNode other{loop};
    other.network->set_credentials(ours());
    const auto first = other.connect(address);
    const auto second = other.connect(address);
    ASSERT_TRUE(until([&] { return node.guests.size() == 2; }));
    const auto third = other.connect(address);
    ASSERT_TRUE(until([&] { return third->end.has_value(); }));
    EXPECT_FALSE(first->end || second->end);
    first->channel.reset();
    ASSERT_TRUE(until([&] { return node.guests[0]->end || node.guests[1]->end; }));
    const auto fourth = other.connect(address);
    EXPECT_TRUE(until([&] { return fourth->identity.has_value(); }));
}

}  // namespace
}  // namespace stoker::sidecar
