// Memory limits shared by the connections of one server.
#include "sidecar/service/frame_socket.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"

namespace stoker::sidecar {
namespace {

// A socket whose peer reads nothing.
struct Connection {
    Connection(EventLoop& loop, std::shared_ptr<FrameSocket::SharedRoom> room) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        peer = UniqueFd{ends[0]};
        socket.emplace(
            loop,
            UniqueFd{ends[1]},
            [](const Frame&) {},
            [this](const std::string& why) { reason = why; });
        socket->share(std::move(room));
    }

    // Queues an answer to a fetch of that many samples.
    void answer(std::size_t samples) {
        local::Fetched fetched;
        fetched.statuses.resize(samples);
        socket->send(fetched, 1);
    }

    UniqueFd peer;
    std::optional<std::string> reason;
    std::optional<FrameSocket> socket;
};

class SharedRoomTest : public testing::Test {
protected:
    void turn() {
        for (int i = 0; i < 10; ++i) {
            loop_.step(std::chrono::milliseconds{1});
        }
    }

    SystemClock clock_;
    EventLoop loop_{clock_};
    std::shared_ptr<FrameSocket::SharedRoom> room_ = std::make_shared<FrameSocket::SharedRoom>(
        FrameSocket::SharedRoom{.bytes_max = mib(4).count()});
};

TEST_F(SharedRoomTest, ClosesConnectionsThatReadNothingSoThatOthersHaveRoom) {
    std::vector<std::unique_ptr<Connection>> greedy;
    for (int i = 0; i < 16; ++i) {
        greedy.push_back(std::make_unique<Connection>(loop_, room_));
        greedy.back()->answer(mib(1).count());
        turn();
        EXPECT_LE(room_->bytes, mib(6).count());
    }
    EXPECT_TRUE(greedy.back()->reason.has_value());
    Connection modest{loop_, room_};
    modest.answer(100);
    turn();
    EXPECT_FALSE(modest.reason.has_value()) << "one that holds little goes on";
    greedy.clear();
    EXPECT_EQ(room_->bytes, modest.socket->backlog_bytes());
}

TEST_F(SharedRoomTest, RoomsShareTheLimitOfTheRoomThatContainsThem) {
    const auto whole = std::make_shared<FrameSocket::SharedRoom>(
        FrameSocket::SharedRoom{.bytes_max = mib(4).count()});
    std::vector<std::unique_ptr<Connection>> greedy;
    for (int i = 0; i < 12; ++i) {
        greedy.push_back(std::make_unique<Connection>(
            loop_,
            std::make_shared<FrameSocket::SharedRoom>(
                FrameSocket::SharedRoom{.bytes_max = mib(64).count(), .whole = whole})));
        for (int answer = 0; answer < 64 && greedy.back()->socket->is_open(); ++answer) {
            greedy.back()->answer(mib(1).count() / 8);
            loop_.step(Duration{});
        }
        EXPECT_LE(whole->bytes, mib(6).count());
    }
    greedy.clear();
    EXPECT_EQ(whole->bytes, 0U);
}

TEST_F(SharedRoomTest, IncompleteFramesCountToo) {
    Connection slow{loop_, room_};
    std::vector<std::byte> most =
        local::encode_frame(local::Fetch{std::vector<std::uint64_t>(100'000)}, 1);
    most.pop_back();
    std::size_t sent = 0;
    while (sent < most.size()) {
        const auto wrote =
            ::send(slow.peer.get(), most.data() + sent, most.size() - sent, MSG_NOSIGNAL);
        sent += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
        turn();
    }
    EXPECT_GE(room_->bytes, most.size() - 1);
    slow.socket->close();
    EXPECT_EQ(room_->bytes, 0U);
}

TEST_F(SharedRoomTest, AnswersAnUndecodablePayloadAndEndsTheConnection) {
    Connection client{loop_, room_};
    auto bad = local::encode_frame(local::Ping{}, 7);
    bad[4] = static_cast<std::byte>(local::FrameType::kDraw);  // without its payload
    EXPECT_GT(::send(client.peer.get(), bad.data(), bad.size(), MSG_NOSIGNAL), 0);
    turn();
    EXPECT_EQ(client.reason, "");
    std::vector<std::byte> got(1U << 16U);
    const auto count = ::recv(client.peer.get(), got.data(), got.size(), MSG_DONTWAIT);
    ASSERT_GT(count, static_cast<ssize_t>(local::kFrameHeaderBytes));
    const auto header =
        local::decode_frame_header(std::span{got}.first(local::kFrameHeaderBytes)).value();
    EXPECT_EQ(header.type, local::FrameType::kError);
    EXPECT_EQ(header.request_id, 7U);
}

}  // namespace
}  // namespace stoker::sidecar
