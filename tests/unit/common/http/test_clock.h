#pragma once

#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "common/base/clock.h"

namespace stoker::http {

// The system's clock plus advance(). Counts the readings of each thread. After fail_after(n) the
// n-th reading throws. Thread-safe.
class TestClock final : public Clock {
public:
    [[nodiscard]] TimePoint now() const override {
        const std::lock_guard lock{mutex_};
        ++readings_[std::this_thread::get_id()];
        if (left_ > 0 && --left_ == 0) {
            throw std::bad_alloc{};
        }
        return system_.now() + ahead_;
    }

    [[nodiscard]] WallTime wall_now() const override { return system_.wall_now(); }

    void advance(Duration by) {
        const std::lock_guard lock{mutex_};
        ahead_ += by;
    }

    // 0: no reading throws.
    void fail_after(int readings) {
        const std::lock_guard lock{mutex_};
        left_ = readings;
    }

    [[nodiscard]] int readings_of(std::thread::id thread) const {
        const std::lock_guard lock{mutex_};
        return readings_[thread];
    }

private:
    mutable std::mutex mutex_;
    mutable std::map<std::thread::id, int> readings_;
    mutable int left_ = 0;
    Duration ahead_{};
    const SystemClock system_;
};

}  // namespace stoker::http
