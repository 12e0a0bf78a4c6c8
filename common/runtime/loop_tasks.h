#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/runtime/event_loop.h"

// Timers and tasks that wait in a loop and are cancelled with the object that owns them. Made and
// destroyed on the loop's thread; the loop outlives both.
namespace stoker {

// One task that runs later. Belongs to the loop's thread.
class LoopTimer {
public:
    explicit LoopTimer(EventLoop& loop)
        : loop_(loop) {}

    LoopTimer(const LoopTimer&) = delete;
    LoopTimer& operator=(const LoopTimer&) = delete;

    ~LoopTimer() { cancel(); }

    // Replaces what waited.
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

    // `task` for callbacks on the loop's thread that may come after our end.
    [[nodiscard]] EventLoop::Task guarded(EventLoop::Task task) const {
        return [alive = std::weak_ptr{alive_}, task = std::move(task)] {
            if (!alive.expired()) {
                task();
            }
        };
    }

    // Any thread that we outlive.
    void post(EventLoop::Task task) const { loop_.post(guarded(std::move(task))); }

    // post() for threads that may outlive us, though not the loop. Made on the loop's thread.
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
