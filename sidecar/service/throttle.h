#pragma once

#include <deque>
#include <functional>

#include "common/runtime/loop_tasks.h"
#include "sidecar/core/time_share.h"

namespace stoker::sidecar {

// Keeps the work that one group of sockets makes within a share of the loop's time (TimeShare).
// Work is measured between enter() and leave(), which may be nested. Belongs to the loop's thread.
class Throttle {
public:
    Throttle(EventLoop& loop, double share);
    Throttle(const Throttle&) = delete;
    Throttle& operator=(const Throttle&) = delete;

    void set_share(double share);

    void enter();
    void leave();

    // Work that somebody else's thread did for the group.
    void spend(Duration time);

    // No more work now; on_resume() tells when. Counts the work since enter() first.
    [[nodiscard]] bool is_spent();

    // Calls `go_on` once, when there is time again, in the order of the calls; it does not destroy
    // us.
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

// Work of a throttle as long as this lives; nullptr: nobody's.
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
