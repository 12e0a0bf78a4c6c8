#include "common/runtime/event_loop.h"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stoker {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class EventLoopTest : public testing::Test {
protected:
    EventLoopTest() {
        std::array<int, 2> fds{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
        ours.reset(fds[0]);
        theirs.reset(fds[1]);
    }

    void send() const { EXPECT_EQ(::write(theirs.get(), "x", 1), 1); }

    SystemClock clock;
    EventLoop loop{clock};
    UniqueFd ours;
    UniqueFd theirs;
};

TEST_F(EventLoopTest, CallsBackForReadableDescriptor) {
    int calls = 0;
    loop.watch(ours.get(), [&](IoReady ready) {
        calls += ready.readable ? 1 : 0;
        char byte = 0;
        EXPECT_EQ(::read(ours.get(), &byte, 1), 1);
    });
    loop.step(Duration{});
    EXPECT_EQ(calls, 0);
    send();
    loop.step(milliseconds{1000});
    EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, ReportsHangUpWithoutReadInterest) {
    bool told = false;
    loop.watch(ours.get(), [&](IoReady ready) {
        told = ready.readable;
        loop.forget(ours.get());
    });
    loop.set_interest(ours.get(), false, false);
    theirs.reset();
    loop.step(milliseconds{1000});
    EXPECT_TRUE(told);
}

TEST_F(EventLoopTest, CallbackMayForgetItsOwnDescriptor) {
    int calls = 0;
    loop.watch(ours.get(), [&](IoReady) {
        ++calls;
        loop.forget(ours.get());
    });
    send();
    loop.step(milliseconds{1000});
    loop.step(Duration{});
    EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, RunsTimersInOrder) {
    std::vector<int> ran;
    const TimePoint now = loop.now();
    loop.run_at(now + milliseconds{2}, [&] { ran.push_back(2); });
    loop.run_at(now + milliseconds{1}, [&] { ran.push_back(1); });
    const TimerId cancelled = loop.run_at(now, [&] { ran.push_back(0); });
    loop.cancel(cancelled);
    while (ran.size() < 2) {
        loop.step(milliseconds{1000});
    }
    EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST_F(EventLoopTest, TimerMaySetAnother) {
    int ran = 0;
    loop.run_at(loop.now(), [&] { loop.run_at(loop.now(), [&] { ++ran; }); });
    while (ran == 0) {
        loop.step(milliseconds{1000});
    }
    EXPECT_EQ(ran, 1);
}

TEST_F(EventLoopTest, RunsPostedTasksInOrder) {
    std::vector<int> ran;
    std::thread poster{[&] {
        for (int i = 0; i < 1000; ++i) {
            loop.post([&ran, i] { ran.push_back(i); });
        }
        loop.stop();
    }};
    loop.run();
    poster.join();
    ASSERT_EQ(ran.size(), 1000U);
    EXPECT_TRUE(std::ranges::is_sorted(ran));
}

}  // namespace
}  // namespace stoker
