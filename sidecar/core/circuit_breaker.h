#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Stops requests after a failure and retries with one probe at a time, at growing intervals.
//
// Reason: while the disk is full, trying every sample only wastes origin traffic. A failure opens
// the breaker for `backoff_min`; then one request may pass as a probe. A successful probe closes
// the breaker; a failed one doubles the wait, up to `backoff_max`. A cancelled probe permits
// another one. `backoff_max` after the wait, all requests may pass: a failure so long ago says
// nothing about what is requested now. Pure: no timers inside. Not thread-safe.
class CircuitBreaker {
public:
    struct Limits {
        Duration backoff_min = std::chrono::seconds{1};
        Duration backoff_max = std::chrono::seconds{30};
    };

    CircuitBreaker() = default;

    explicit CircuitBreaker(Limits limits)
        : limits_(limits) {}

    // Closed: every request passes.
    [[nodiscard]] bool is_closed() const { return !open_until_.has_value(); }

    // Whether one more request may be sent now.
    [[nodiscard]] bool allows(TimePoint now) const {
        return is_closed() ||
               (now >= *open_until_ && (!probing_ || now - *open_until_ >= limits_.backoff_max));
    }

    // Call when a request that allows() permitted starts.
    void on_start() { probing_ = !is_closed(); }

    void on_success() { *this = CircuitBreaker{limits_}; }

    // Failures of requests that were under way when the breaker opened do not extend the wait.
    void on_failure(TimePoint now) {
        if (!is_closed() && !probing_) {
            return;
        }
        backoff_ = is_closed() ? limits_.backoff_min : std::min(backoff_ * 2, limits_.backoff_max);
        open_until_ = now + backoff_;
        probing_ = false;
    }

    void on_abandoned() { probing_ = false; }

    // When allows() may next change without another event.
    [[nodiscard]] std::optional<TimePoint> retries_at() const {
        return probing_ ? std::nullopt : open_until_;
    }

private:
    Limits limits_{};
    std::optional<TimePoint> open_until_;
    Duration backoff_{};
    bool probing_ = false;
};

}  // namespace stoker::sidecar
