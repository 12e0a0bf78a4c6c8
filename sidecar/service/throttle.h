#pragma once

#include <deque>
#include <functional>

#include "common/runtime/event_loop.h"
#include "sidecar/core/time_share.h"

namespace stoker::sidecar {

// Limits the work of one group of sockets to a share of the loop's time (TimeShare). Work is the
// time between enter() and leave(), which may be nested. Use it on the loop's thread.
class Throttle {
public:
    Throttle(EventLoop& loop, double share);
    Throttle(const Throttle&) = delete;
    Throttle& operator=(const Throttle&) = delete;

    void set_share(double share);

    void enter();
    void leave();

    // Adds time that another thread worked for the group.
    void spend(Duration time);

    // Whether no time is left; on_resume() signals new time. Includes the work since enter().
    [[nodiscard]] bool is_spent();

    // Calls `go_on` once, when there is time again; callers are called in the order in which they
    // registered. `go_on` must not destroy this object.
    void on_resume(std::function<void()> go_on);

private:
    void account();
    void wait();
    void resume();

    EventLoop& loop_;
    TimeShare share_;
    int depth_ = 0;
    TimePoint counted_to_{};
    std::deque<std::function<void()>> waiting_;
    LoopTimer timer_;
    bool is_timed_ = false;
};

// Charges its own lifetime to a throttle; nullptr: charges nothing.
class ThrottledTime {
public:
    explicit ThrottledTime(Throttle* throttle)
        : throttle_(throttle) {
        if (throttle_ != nullptr) {
            throttle_->enter();
        }
    }

    ThrottledTime(const ThrottledTime&) = delete;
    ThrottledTime& operator=(const ThrottledTime&) = delete;

    ~ThrottledTime() {
        if (throttle_ != nullptr) {
            throttle_->leave();
        }
    }

private:
    Throttle* throttle_;
};

}  // namespace stoker::sidecar
