// A throttle limits the share of the loop's time that the sockets of one group get.
#include "sidecar/service/throttle.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "sidecar/service/frame_socket.h"
#include "tests/support/manual_clock.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;

constexpr int kFrames = 200;

// A peer that has sent kFrames pings; each costs the loop a millisecond.
struct Peer {
    Peer(EventLoop& loop, testing::ManualClock& clock, std::shared_ptr<Throttle> throttle) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        peer = UniqueFd{ends[0]};
        socket.emplace(
            loop,
            UniqueFd{ends[1]},
            [this, &clock](const Frame&) {
                ++handled;
                clock.advance(milliseconds{1});
            },
            [](const std::string&) {});
        socket->limit_by(std::move(throttle));
        const auto ping = local::encode_frame(local::Ping{}, 1);
        for (int frame = 0; frame < kFrames; ++frame) {
            EXPECT_GT(::send(peer.get(), ping.data(), ping.size(), MSG_NOSIGNAL), 0);
        }
    }

    UniqueFd peer;
    int handled = 0;
    std::optional<FrameSocket> socket;
};

class ThrottleTest : public ::testing::Test {
protected:
    void turn() {
        for (int i = 0; i < 10; ++i) {
            loop_.step(Duration{});
        }
    }

    testing::ManualClock clock_;
    EventLoop loop_{clock_};
    std::shared_ptr<Throttle> throttle_ = std::make_shared<Throttle>(loop_, 0.2);
};

TEST_F(ThrottleTest, FramesOfAGroupGetTheirShareOfTime) {
    Peer one{loop_, clock_, throttle_};
    Peer two{loop_, clock_, throttle_};
    turn();
    EXPECT_LE(one.handled + two.handled, 26) << "a burst";
    for (int passed = 0; passed < 50; ++passed) {
        clock_.advance(milliseconds{10});
        turn();
    }
    EXPECT_NEAR(one.handled + two.handled, 145, 10);
    EXPECT_GT(two.handled, 40) << "both have their turns";
}

TEST_F(ThrottleTest, LosesNoFrame) {
    Peer one{loop_, clock_, throttle_};
    for (int passed = 0; passed < 300 && one.handled < kFrames; ++passed) {
        clock_.advance(milliseconds{10});
        turn();
    }
    EXPECT_EQ(one.handled, kFrames);
}

TEST_F(ThrottleTest, CountsWorkOfOtherThreads) {
    throttle_->spend(milliseconds{100});
    Peer one{loop_, clock_, throttle_};
    turn();
    EXPECT_EQ(one.handled, 0);
}

TEST_F(ThrottleTest, ASocketDestroyedWhileItWaitsIsNotCalled) {
    throttle_->spend(milliseconds{100});
    auto one = std::make_unique<Peer>(loop_, clock_, throttle_);
    turn();
    one.reset();
    clock_.advance(std::chrono::seconds{10});
    turn();
}

}  // namespace
}  // namespace stoker::sidecar
