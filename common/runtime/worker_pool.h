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

// A few named threads for work that blocks (disks, checksums). Tasks start in the order of post().
// The queue has no bound of its own: whoever posts bounds what is under way. Thread-safe.
class WorkerPool {
public:
    using Task = std::function<void()>;

    WorkerPool(const std::string& name, std::size_t thread_count);
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    // Runs what was posted, then joins.
    ~WorkerPool();

    void post(Task task);

    // Tasks that wait for a thread.
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
