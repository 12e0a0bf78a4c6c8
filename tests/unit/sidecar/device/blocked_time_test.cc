#include "sidecar/device/blocked_time.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;

TEST(BlockedTime, CountsBlockedTime) {
    const BlockedTime blocked;
    std::this_thread::sleep_for(milliseconds{50});  // as a slow disk blocks a writer
    EXPECT_GE(blocked.elapsed(), milliseconds{40});
    EXPECT_LE(blocked.elapsed(), std::chrono::seconds{20});
}

// More threads than any machine has processors: this one waits for a processor most of the time.
TEST(BlockedTime, LeavesOutWaitingForABusyProcessor) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> others;
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
        others.emplace_back([&stop] {
            while (!stop) {
            }
        });
    }
    const auto begin = std::chrono::steady_clock::now();
    const BlockedTime blocked;
    std::uint64_t work = 0;
    while (std::chrono::steady_clock::now() - begin < milliseconds{500}) {
        work += static_cast<std::uint64_t>(blocked.elapsed().count() > 0);
    }
    const Duration elapsed = blocked.elapsed();
    const auto wall = std::chrono::steady_clock::now() - begin;
    stop = true;
    for (std::thread& other : others) {
        other.join();
    }
    EXPECT_LT(elapsed, wall / 4) << "of " << wall.count() << " ns; looked " << work << " times";
}

}  // namespace
}  // namespace stoker::sidecar
