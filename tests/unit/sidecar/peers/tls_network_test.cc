#include "sidecar/peers/tls_network.h"

#include <thread>

#include <gtest/gtest.h>

#include "common/base/wire.h"
#include "sidecar/peers/frame_writer.h"
#include "sidecar/peers/tcp.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/peers/peers_world.h"
#include "tests/unit/sidecar/peers/raw_peer.h"

namespace stoker::sidecar {
namespace {

using test::frame_of;
using test::PeerNode;
using test::RawPeer;
using test::RecordedPeer;
using test::same;

struct TlsNetworkTest : test::PeersTest {
    PeerNode server{loop};
    PeerNode client{loop};
    const std::string address = server.listen();

    TlsNetworkTest() {
        server.network->set_credentials(ours());
        client.network->set_credentials(ours());
    }

    // Connects and waits until both ends are open.
    std::unique_ptr<RecordedPeer> open() {
        auto peer = client.connect(address);
        const std::size_t before = server.guests.size();
        EXPECT_TRUE(until([&] {
            return peer->identity && server.guests.size() > before &&
                   server.guests.back()->identity;
        }));
        return peer;
    }

    RecordedPeer& guest() { return *server.guests.back(); }
};

std::vector<std::byte> wire_of(const PeerFrame& frame) {
    FrameWriter writer;
    writer.push(frame);
    std::vector<std::byte> bytes;
    for (auto record = writer.record(); !record.empty(); record = writer.record()) {
        bytes.insert(bytes.end(), record.begin(), record.end());
        writer.wrote(record.size());
    }
    return bytes;
}

std::vector<std::byte> prefix(std::uint32_t head_bytes, std::uint32_t payload_bytes) {
    return std::move(WireWriter{}.put(head_bytes).put(payload_bytes)).take();
}

TEST_F(TlsNetworkTest, FramesOfAllSizesArriveInOrderBothWays) {
    Prng prng{test::seed()};
    const auto peer = open();
    std::vector<PeerFrame> sent;
    for (const std::size_t payload :
         {0,
          1,
          4096,
          16'367,
          16'368,
          16'383,
          16'384,
          16'385,
          32'768,
          110'000,
          1 << 20,
          5'000'003}) {
        for (const std::size_t head : {std::size_t{1}, std::size_t{50}, PeerFrame::kHeadMax}) {
            sent.push_back(frame_of(head, payload, prng()));
        }
    }
    for (int i = 0; i < 300; ++i) {
        sent.push_back(frame_of(1 + prng.below(200), prng.below(40'000), prng()));
    }
    for (const PeerFrame& frame : sent) {
        peer->channel->send(frame);
        guest().channel->send(frame);
    }
    ASSERT_TRUE(until([&] {
        return peer->frames.size() == sent.size() && guest().frames.size() == sent.size();
    }));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_TRUE(same(peer->frames[i], sent[i])) << i;
        EXPECT_TRUE(same(guest().frames[i], sent[i])) << i;
    }
    EXPECT_TRUE(until([&] { return peer->channel->unsent_bytes() == 0; }));
}

TEST_F(TlsNetworkTest, FramesSentBeforeTheHandshakeWaitForIt) {
    const PeerFrame frame = frame_of(7, 100'000, 1);
    const UniqueFd silent = listen_tcp("127.0.0.1", 0).value();
    const auto waiting = client.connect(local_address(silent.get()).value());
    waiting->channel->send(frame);
    const auto peer = client.connect(address);
    peer->channel->send(frame);
    ASSERT_TRUE(until([&] { return !server.guests.empty() && guest().frames.size() == 1; }));
    EXPECT_TRUE(same(guest().frames[0], frame));
    EXPECT_EQ(waiting->channel->unsent_bytes(), wire_bytes(frame)) << "nobody shakes hands there";
}

TEST_F(TlsNetworkTest, FramesInTornPiecesAreWhole) {
    Prng prng{test::seed()};
    RawPeer raw{address};
    ASSERT_TRUE(raw.shake_hands({.credentials = ours()}));
    std::vector<PeerFrame> sent;
    std::vector<std::byte> bytes;
    for (int i = 0; i < 20; ++i) {
        sent.push_back(frame_of(1 + prng.below(20), prng.below(60), prng()));
        const auto more = wire_of(sent.back());
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    for (std::span<const std::byte> rest{bytes}; !rest.empty();) {
        const std::size_t count = std::min<std::size_t>(rest.size(), 1 + prng.below(7));
        ASSERT_TRUE(raw.send(rest.first(count)));
        rest = rest.subspan(count);
    }
    ASSERT_TRUE(until([&] { return !server.guests.empty() && guest().frames.size() == 20; }));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_TRUE(same(guest().frames[i], sent[i])) << i;
    }
}

TEST_F(TlsNetworkTest, ClosingEndsTheOtherSide) {
    auto peer = open();
    peer->channel.reset();
    ASSERT_TRUE(until([&] { return guest().end.has_value(); }));
    EXPECT_EQ(guest().end_code(), "unavailable");
    EXPECT_FALSE(peer->end);

    peer = open();
    guest().channel.reset();
    ASSERT_TRUE(until([&] { return peer->end.has_value(); }));
    EXPECT_EQ(peer->end_code(), "unavailable");
    peer->channel->send(frame_of(1, 1, 1));  // dropped, because the channel has ended
}

TEST_F(TlsNetworkTest, CloseInTheMiddleOfAFrameDeliversNoFrame) {
    RawPeer raw{address};
    ASSERT_TRUE(raw.shake_hands({.credentials = ours()}));
    const auto bytes = wire_of(frame_of(10, 1000, 1));
    ASSERT_TRUE(raw.send(std::span{bytes}.first(500)));
    raw.close();
    ASSERT_TRUE(until([&] { return !server.guests.empty() && guest().end; }));
    EXPECT_TRUE(guest().frames.empty());
    EXPECT_EQ(guest().end_code(), "unavailable");
    EXPECT_NE(guest().end->message.find("in the middle of a frame"), std::string::npos);
}

TEST_F(TlsNetworkTest, LengthsOutOfBoundsEndTheConnection) {
    for (const auto& bytes :
         {prefix(0, 10),
          prefix(PeerFrame::kHeadMax + 1, 0),
          prefix(1, (64U << 20U) + 1),
          prefix(0xFFFFFFFF, 0xFFFFFFFF)}) {
        RawPeer raw{address};
        ASSERT_TRUE(raw.shake_hands({.credentials = ours()}));
        const std::size_t before = server.guests.size();
        ASSERT_TRUE(raw.send(bytes));
        ASSERT_TRUE(until([&] { return server.guests.size() > before && guest().end; }));
        EXPECT_EQ(guest().end_code(), "corruption");
        EXPECT_TRUE(raw.is_closed_by_peer());
    }
}

TEST_F(TlsNetworkTest, UnreachablePeerIsReportedAfterConnectReturns) {
    std::string unused = PeerNode{loop}.listen();  // closed again
    for (const auto& [to, code] :
         {std::pair<std::string, std::string>{unused, "unavailable"},
          {"peer.example:1", "invalid_argument"},
          {"127.0.0.1", "invalid_argument"}}) {
        const auto peer = client.connect(to);
        EXPECT_FALSE(peer->end) << "not inside connect()";
        ASSERT_TRUE(until([&] { return peer->end.has_value(); }));
        EXPECT_EQ(peer->end_code(), code) << to;
        EXPECT_FALSE(peer->identity);
    }
}

TEST_F(TlsNetworkTest, ListenNeedsAnIpAddress) {
    PeerNode node{loop, {.host = "localhost.example"}};
    const auto listening =
        node.network->listen([](std::unique_ptr<PeerChannel>) -> PeerEvents& { std::abort(); });
    EXPECT_EQ(listening.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(TlsNetworkTest, ChannelMayBeDestroyedInAnyEvent) {
    for (const int event : {1, 2, 3}) {  // on_open, the first frame, the second one
        const auto peer = open();
        int events = 1;
        RecordedPeer& receiver = guest();
        receiver.after_event = [&] {
            if (++events >= event) {
                receiver.channel.reset();
            }
        };
        if (event == 1) {
            receiver.channel.reset();
        }
        for (int i = 0; i < 50; ++i) {
            peer->channel->send(frame_of(1, 10, 1));
        }
        ASSERT_TRUE(until([&] { return peer->end.has_value(); }));
        EXPECT_EQ(receiver.frames.size(), static_cast<std::size_t>(event - 1));
        EXPECT_FALSE(receiver.end);
    }
}

TEST_F(TlsNetworkTest, ChannelMayBeDestroyedInOnOpenAndOnEnd) {
    auto peer = client.connect(address);
    peer->after_event = [&] { peer->channel.reset(); };
    ASSERT_TRUE(until([&] { return peer->identity.has_value(); }));
    ASSERT_TRUE(until([&] { return !server.guests.empty() && guest().end; }));
    EXPECT_FALSE(peer->end);

    peer = open();
    peer->after_event = [&] { peer->channel.reset(); };
    guest().channel.reset();
    ASSERT_TRUE(until([&] { return peer->end && peer->channel == nullptr; }));
}

TEST_F(TlsNetworkTest, ChannelMayBeDestroyedWhenItIsAccepted) {
    PeerNode other{loop};
    other.network->set_credentials(ours());
    RecordedPeer nobody;
    const std::string there =
        other.network
            ->listen([&](std::unique_ptr<PeerChannel> channel) -> PeerEvents& {
                channel.reset();
                return nobody;
            })
            .value();
    const auto peer = client.connect(there);
    ASSERT_TRUE(until([&] { return peer->end.has_value(); }));
    EXPECT_FALSE(nobody.identity);
}

TEST_F(TlsNetworkTest, NetworkMayBeDestroyedInAnEvent) {
    const auto peer = open();
    RecordedPeer& receiver = guest();
    receiver.after_event = [&] {
        receiver.channel.reset();
        server.network.reset();
    };
    for (int i = 0; i < 50; ++i) {
        peer->channel->send(frame_of(1, 100'000, 1));
    }
    ASSERT_TRUE(until([&] { return peer->end.has_value(); }));
    EXPECT_EQ(receiver.frames.size(), 1U);
}

TEST_F(TlsNetworkTest, ChannelsMayOutliveTheNetwork) {
    const auto peer = open();
    client.network.reset();
    peer->channel->send(frame_of(1, 1, 1));
    ASSERT_TRUE(until([&] { return guest().end.has_value(); }));
    EXPECT_FALSE(peer->end);
}

TEST_F(TlsNetworkTest, PayloadsOfSentFramesAreReleasedOnTheSidecarsLoop) {
    struct Witness {
        std::thread::id* released;
        std::vector<std::byte> bytes = std::vector<std::byte>(200'000);

        explicit Witness(std::thread::id* place)
            : released(place) {}

        Witness(const Witness&) = delete;
        Witness& operator=(const Witness&) = delete;

        ~Witness() { *released = std::this_thread::get_id(); }
    };

    const auto send = [](RecordedPeer& peer, std::thread::id& released) {
        const auto held = std::make_shared<Witness>(&released);
        peer.channel->send({{std::byte{1}}, {held->bytes, held}});
    };
    const auto peer = open();
    std::vector<std::thread::id> released(60);
    for (std::size_t i = 0; i < 30; ++i) {
        send(*peer, released[i]);
    }
    ASSERT_TRUE(until([&] { return guest().frames.size() == 30; }));
    for (std::size_t i = 30; i < 60; ++i) {
        send(*peer, released[i]);
    }
    peer->channel.reset();  // many are not sent
    ASSERT_TRUE(until([&] { return std::ranges::count(released, std::thread::id{}) == 0; }));
    EXPECT_EQ(std::ranges::count(released, std::this_thread::get_id()), 60);
}

}  // namespace
}  // namespace stoker::sidecar
