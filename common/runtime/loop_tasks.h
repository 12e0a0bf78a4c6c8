#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/runtime/event_loop.h"

// Timers and tasks that are cancelled when their owner is destroyed. Created and destroyed on the
// loop's thread; the loop outlives both.
namespace stoker {

// One task that runs later. For the loop's thread only.
class LoopTimer {
public:
    explicit LoopTimer(EventLoop& loop)
        : loop_(loop) {}

    LoopTimer(const LoopTimer&) = delete;
    LoopTimer& operator=(const LoopTimer&) = delete;

    ~LoopTimer() { cancel(); }

    // Replaces the pending task.
    void run_at(TimePoint when, EventLoop::Task task) {
        cancel();
        timer_ = loop_.run_at(when, std::move(task));
    }

    void run_in(Duration delay, EventLoop::Task task) {
        run_at(loop_.now() + delay, std::move(task));
    }

    void cancel() { loop_.cancel(timer_); }

private:
    EventLoop& loop_;
    TimerId timer_{};
};

// Tasks that run on the loop while this lives, and never afterwards.
class LoopTasks {
public:
    using Poster = std::function<void(EventLoop::Task)>;

    explicit LoopTasks(EventLoop& loop)
        : loop_(loop) {}

    LoopTasks(const LoopTasks&) = delete;
    LoopTasks& operator=(const LoopTasks&) = delete;

    // Wraps `task` for callbacks on the loop's thread that may come after this object's
    // destruction.
    [[nodiscard]] EventLoop::Task guarded(EventLoop::Task task) const {
        return [alive = std::weak_ptr{alive_}, task = std::move(task)] {
            if (!alive.expired()) {
                task();
            }
        };
    }

    // Posts from any thread that ends before this object does.
    void post(EventLoop::Task task) const { loop_.post(guarded(std::move(task))); }

    // post() for threads that may outlive this object, though not the loop. Call poster() on the
    // loop's thread.
    [[nodiscard]] Poster poster() const {
        return [&loop = loop_, alive = std::weak_ptr{alive_}](EventLoop::Task task) {
            loop.post([alive, task = std::move(task)] {
                if (!alive.expired()) {
                    task();
                }
            });
        };
    }

private:
    EventLoop& loop_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace stoker
