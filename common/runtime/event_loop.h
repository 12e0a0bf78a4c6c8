#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/strong.h"
#include "common/base/unique_fd.h"

namespace stoker {

using TimerId = Strong<std::uint64_t, struct TimerIdTag>;

// Readiness of a watched descriptor. A hang-up or an error shows as readable; the next read returns
// it.
struct IoReady {
    bool readable = false;
    bool writable = false;
};

// One thread's loop over descriptors (epoll), timers and posted tasks. Callbacks run on the thread
// that calls run() or step(), one at a time, and must not block. Only post() and stop() may be
// called on other threads. A callback may watch, forget, set and cancel anything, itself included.
class EventLoop {
public:
    using IoCallback = std::function<void(IoReady)>;
    using Task = std::function<void()>;

    explicit EventLoop(const Clock& clock);
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;
    ~EventLoop();

    [[nodiscard]] TimePoint now() const { return clock_.now(); }

    [[nodiscard]] const Clock& clock() const { return clock_; }

    // Descriptor for a loop that runs inside another one: readable while step() has events or
    // posted tasks to handle. Only poll it.
    [[nodiscard]] int fd() const { return epoll_.get(); }

    // When the earliest timer is due; nullopt: there is none.
    [[nodiscard]] std::optional<TimePoint> next_timer() const;

    // Watches `fd` for reading until forget(). The caller keeps the descriptor open until then.
    void watch(int fd, IoCallback callback);

    // Sets whether the callback runs when `fd` is readable, and when it is writable.
    void set_interest(int fd, bool readable, bool writable);
    void forget(int fd);

    TimerId run_at(TimePoint when, Task task);

    // Cancels a timer. Ignores one that has run or was cancelled.
    void cancel(TimerId timer);

    // Any thread: runs `task` on the loop soon. Must not be called after the loop's destruction.
    void post(Task task);

    // Any thread: makes run() return.
    void stop();

    void run();

    // Waits at most `timeout` for events and handles them. False: stop() was called.
    bool step(Duration timeout);

private:
    struct Watch {
        IoCallback callback;
        std::uint32_t events = 0;
    };

    int wait_ms(Duration timeout) const;
    void run_timers();
    void run_posted();

    const Clock& clock_;
    UniqueFd epoll_;
    UniqueFd wake_;
    std::unordered_map<int, std::shared_ptr<Watch>> watches_;
    std::map<std::pair<TimePoint, TimerId>, Task> timers_;
    std::unordered_map<TimerId, TimePoint> timer_times_;
    std::uint64_t next_timer_ = 1;
    std::mutex mutex_;  // guards posted_ and stopping_
    std::vector<Task> posted_;
    bool stopping_ = false;
};

// One task that runs later, unless this object is destroyed before. Use it on the loop's thread
// only; the loop must outlive it.
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

// Runs tasks on the loop while this object exists, and never afterwards. Create and destroy it on
// the loop's thread; the loop must outlive it.
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

    // Posts a task, from any thread that ends before this object is destroyed.
    void post(EventLoop::Task task) const { loop_.post(guarded(std::move(task))); }

    // Returns a post() for threads that may outlive this object, but not the loop. Call poster() on
    // the loop's thread.
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
