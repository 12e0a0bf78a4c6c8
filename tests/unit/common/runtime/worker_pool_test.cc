#include "common/runtime/worker_pool.h"

#include <atomic>
#include <latch>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(WorkerPool, RunsAllPostedTasksBeforeItEnds) {
    std::atomic<int> ran{0};
    {
        WorkerPool pool{"test", 3};
        for (int i = 0; i < 1000; ++i) {
            pool.post([&ran] { ++ran; });
        }
    }
    EXPECT_EQ(ran, 1000);
}

TEST(WorkerPool, RunsTasksConcurrently) {
    std::latch both{2};
    WorkerPool pool{"test", 2};
    for (int i = 0; i < 2; ++i) {
        pool.post([&both] { both.arrive_and_wait(); });  // one task alone would block for ever
    }
    both.wait();
}

}  // namespace
}  // namespace stoker
