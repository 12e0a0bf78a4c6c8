#include "sidecar/core/bypass_controller.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr FetchTimes kSlowDisk{milliseconds{20}, milliseconds{100}};
constexpr FetchTimes kFastDisk{milliseconds{20}, milliseconds{2}};

class BypassControllerTest : public testing::Test {
protected:
    // One second of `fetches` fetches. The disk blocks the writers, all together, for `blocked` s.
    void second(FetchTimes times, double blocked, int fetches = 20) {
        for (int i = 0; i < fetches; ++i) {
            aside.on_stored(times);
        }
        now += seconds{1};
        write_blocked +=
            std::chrono::duration_cast<Duration>(std::chrono::duration<double>(blocked));
        aside.step(now, write_blocked);
    }

    void run(int count, FetchTimes times, double blocked, int fetches = 20) {
        for (int i = 0; i < count; ++i) {
            second(times, blocked, fetches);
        }
    }

    // Seconds until the controller bypasses a slow disk; at most `limit`.
    int until_aside(int limit) {
        int count = 0;
        for (; count < limit && !aside.is_aside(); ++count) {
            second(kSlowDisk, 1.5);
        }
        return count;
    }

    // Seconds until the bypass ends.
    int until_back(int limit) {
        int count = 0;
        for (; count < limit && aside.is_aside(); ++count) {
            second(kSlowDisk, 0, 0);
        }
        return count;
    }

    BypassController aside{BypassController::Limits{}};
    TimePoint now{seconds{100}};
    Duration write_blocked{};
};

TEST_F(BypassControllerTest, UsesTheCacheWhileTheDiskIsFast) {
    run(1000, kFastDisk, 0.1);
    EXPECT_FALSE(aside.is_aside());
}

TEST_F(BypassControllerTest, BypassesAfterThreeSlowWindows) {
    run(15, kSlowDisk, 1.0);
    EXPECT_FALSE(aside.is_aside()) << "the first second only begins the first window";
    second(kSlowDisk, 1.0);
    EXPECT_TRUE(aside.is_aside());
    EXPECT_EQ(aside.finding().store, milliseconds{100});
    EXPECT_NEAR(aside.finding().blocked_share, 1.0, 1e-9);
}

// A machine without a free processor: everything takes long, but no writer waits for the disk.
TEST_F(BypassControllerTest, IgnoresABusyProcessor) {
    run(1000, {milliseconds{20}, seconds{3}}, 0.3);
    EXPECT_FALSE(aside.is_aside());
}

TEST_F(BypassControllerTest, KeepsTheCacheIfTheOriginIsSlowerThanTheDisk) {
    run(1000, {milliseconds{60}, milliseconds{100}}, 1.0);
    EXPECT_FALSE(aside.is_aside());
}

TEST_F(BypassControllerTest, KeepsTheCacheIfStoringIsFast) {
    run(1000, {milliseconds{1}, milliseconds{9}}, 1.0);
    EXPECT_FALSE(aside.is_aside());
}

TEST_F(BypassControllerTest, OneFastWindowResetsTheCountOfSlowOnes) {
    for (int i = 0; i < 20; ++i) {
        run(10, kSlowDisk, 1.0);
        run(10, kFastDisk, 0.0);
    }
    EXPECT_FALSE(aside.is_aside());
}

TEST_F(BypassControllerTest, FewFetchesExtendAMeasuringWindowAndIdleTimeRestartsIt) {
    run(60, kSlowDisk, 1.0, 1);
    EXPECT_TRUE(aside.is_aside()) << "a disk of one sample a second";
    BypassController other{BypassController::Limits{}};
    std::swap(aside, other);
    for (int i = 0; i < 100; ++i) {
        run(5, kSlowDisk, 1.0, 0);
        EXPECT_EQ(aside.finding(), BypassController::Finding{});
    }
}

TEST_F(BypassControllerTest, DoublesThePauseAfterEachFailedTrial) {
    EXPECT_GT(until_aside(100), 10);
    EXPECT_EQ(until_back(1000), 30);
    EXPECT_LE(until_aside(100), 6) << "one slow window of a trial is enough";
    EXPECT_EQ(until_back(1000), 60);
    for (int i = 0; i < 10; ++i) {
        until_aside(100);
        until_back(1000);
    }
    until_aside(100);
    EXPECT_EQ(until_back(1000), 600);
}

TEST_F(BypassControllerTest, ResetsThePauseAfterADiskRecovered) {
    until_aside(100);
    until_back(100);
    run(20, kFastDisk, 0.0);
    EXPECT_FALSE(aside.is_aside());
    EXPECT_GT(until_aside(100), 10) << "three windows again";
    EXPECT_EQ(until_back(1000), 30);
}

TEST_F(BypassControllerTest, NeverBypassesIfTheMeasuringWindowIsZero) {
    aside = BypassController{{.window = Duration{}}};
    run(1000, kSlowDisk, 1.0);
    EXPECT_FALSE(aside.is_aside());
}

}  // namespace
}  // namespace stoker::sidecar
