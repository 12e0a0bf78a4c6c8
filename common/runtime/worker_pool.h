#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stoker {

// A few named threads for blocking work (disks, checksums). Tasks start in the order of post(). The
// queue is unbounded: callers of post() must limit their pending tasks. Thread-safe.
class WorkerPool {
public:
    using Task = std::function<void()>;

    WorkerPool(const std::string& name, std::size_t thread_count);
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    // Runs all posted tasks, then joins.
    ~WorkerPool();

    void post(Task task);

    // Number of tasks that no thread has started.
    [[nodiscard]] std::size_t backlog() const;

private:
    void run();

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Task> tasks_;
    bool stopping_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace stoker
