#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "common/runtime/event_loop.h"
#include "tests/support/manual_clock.h"

namespace stoker {
namespace {

using std::chrono::seconds;

class LoopTasksTest : public ::testing::Test {
protected:
    void pass(Duration time) {
        clock.advance(time);
        loop.step(Duration{});
    }

    testing::ManualClock clock;
    EventLoop loop{clock};
    int runs = 0;
};

TEST_F(LoopTasksTest, TimerRunsOnceWhenDue) {
    LoopTimer timer{loop};
    timer.run_in(seconds{2}, [this] { ++runs; });
    pass(seconds{1});
    EXPECT_EQ(runs, 0);
    pass(seconds{1});
    pass(seconds{5});
    EXPECT_EQ(runs, 1);
}

TEST_F(LoopTasksTest, LaterTaskReplacesThePendingOne) {
    LoopTimer timer{loop};
    timer.run_in(seconds{1}, [this] { runs += 10; });
    timer.run_in(seconds{2}, [this] { ++runs; });
    pass(seconds{3});
    EXPECT_EQ(runs, 1);
}

TEST_F(LoopTasksTest, TimerMaySetItselfAgain) {
    LoopTimer timer{loop};
    const std::function<void()> tick = [&] {
        ++runs;
        timer.run_in(seconds{1}, tick);
    };
    tick();
    pass(seconds{1});
    pass(seconds{1});
    EXPECT_EQ(runs, 3);
}

TEST_F(LoopTasksTest, CancelledOrDestroyedTimerDoesNotRun) {
    LoopTimer cancelled{loop};
    cancelled.run_in(seconds{1}, [this] { ++runs; });
    cancelled.cancel();
    {
        LoopTimer gone{loop};
        gone.run_in(seconds{1}, [this] { ++runs; });
    }
    pass(seconds{2});
    EXPECT_EQ(runs, 0);
}

TEST_F(LoopTasksTest, RunsTasksWhileTheirOwnerLives) {
    const LoopTasks tasks{loop};
    tasks.post([this] { ++runs; });
    std::thread{[this, post = tasks.poster()] { post([this] { ++runs; }); }}.join();
    EXPECT_EQ(runs, 0);
    loop.step(Duration{});
    EXPECT_EQ(runs, 2);
    tasks.guarded([this] { ++runs; })();
    EXPECT_EQ(runs, 3);
}

TEST_F(LoopTasksTest, RunsNothingAfterTheOwnersEnd) {
    std::optional<LoopTasks> tasks{loop};
    tasks->post([this] { ++runs; });
    const auto post = tasks->poster();
    const auto task = tasks->guarded([this] { ++runs; });
    tasks.reset();
    std::thread{[this, &post] { post([this] { ++runs; }); }}.join();
    task();
    loop.step(Duration{});
    EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace stoker
