#include "common/runtime/worker_pool.h"

#include <utility>

#include <fmt/core.h>

#include "common/runtime/named_thread.h"

namespace stoker {

WorkerPool::WorkerPool(const std::string& name, std::size_t thread_count) {
    threads_.reserve(thread_count);
    for (std::size_t i = 0; i < thread_count; ++i) {
        threads_.push_back(
            start_thread(fmt::format("{}-{}", name, i), [this](const std::stop_token&) { run(); }));
    }
}

WorkerPool::~WorkerPool() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    wake_.notify_all();
    threads_.clear();
}

void WorkerPool::post(Task task) {
    {
        const std::lock_guard lock{mutex_};
        tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
}

void WorkerPool::run() {
    for (;;) {
        Task task;
        {
            std::unique_lock lock{mutex_};
            wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
            if (tasks_.empty()) {
                return;
            }
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        task();
    }
}

}  // namespace stoker
