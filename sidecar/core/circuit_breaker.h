#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Stops requests after a failure and tries again later, with one probe at a time, at growing
// intervals.
//
// Intuition: when the disk is full, hammering it with every sample only burns origin traffic. A
// failure opens the breaker for `backoff_min`; then one request may pass as a probe. The probe's
// success closes the breaker, its failure doubles the wait, up to `backoff_max`. A probe that ends
// without telling anything (cancelled) frees its place. Pure: no timers inside. Not thread-safe.
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

    // May one more request pass now?
    [[nodiscard]] bool allows(TimePoint now) const {
        return is_closed() || (now >= *open_until_ && !probing_);
    }

    // A request that allows() let through is under way.
    void on_start() { probing_ = !is_closed(); }

    void on_success() { *this = CircuitBreaker{limits_}; }

    // Requests that were under way when the breaker opened do not make the wait longer.
    void on_failure(TimePoint now) {
        if (!is_closed() && !probing_) {
            return;
        }
        backoff_ = is_closed() ? limits_.backoff_min : std::min(backoff_ * 2, limits_.backoff_max);
        open_until_ = now + backoff_;
        probing_ = false;
    }

    void on_abandoned() { probing_ = false; }

    // When allows() may change by itself.
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
