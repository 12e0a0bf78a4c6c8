#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/runtime/workers.h"

namespace stoker {

// A few named threads for blocking work (disks, checksums). Tasks start in the order of post(). The
// queue is unbounded: callers of post() must limit their pending tasks. Thread-safe.
class WorkerPool final : public Workers {
public:
    WorkerPool(const std::string& name, std::size_t thread_count);

    // Runs all posted tasks, then joins the threads.
    ~WorkerPool() override;

    void post(Task task) override;

private:
    void run();

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Task> tasks_;
    bool stopping_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace stoker
