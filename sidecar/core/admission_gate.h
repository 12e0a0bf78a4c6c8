#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/base/clock.h"

namespace stoker::sidecar {

// A door that shuts after a failure and is tried again later, by one probe at a time, at growing
// intervals.
//
// Intuition: when the disk is full, hammering it with every sample only burns origin traffic. After
// a failure the gate is shut for `backoff_min`; then one request may pass as a probe. The probe's
// success opens the gate, its failure doubles the wait, up to `backoff_max`. A probe that ends
// without telling anything (cancelled) frees its place. Pure: no timers inside. Not thread-safe.
class AdmissionGate {
public:
    struct Limits {
        Duration backoff_min = std::chrono::seconds{1};
        Duration backoff_max = std::chrono::seconds{30};
    };

    AdmissionGate() = default;

    explicit AdmissionGate(Limits limits)
        : limits_(limits) {}

    [[nodiscard]] bool is_open() const { return !shut_until_.has_value(); }

    // May one more request pass now?
    [[nodiscard]] bool allows(TimePoint now) const {
        return is_open() || (now >= *shut_until_ && !probing_);
    }

    // A request that allows() let through is under way.
    void on_start() { probing_ = !is_open(); }

    void on_success() { *this = AdmissionGate{limits_}; }

    // Stragglers that were under way when the gate shut do not make the wait longer.
    void on_failure(TimePoint now) {
        if (!is_open() && !probing_) {
            return;
        }
        backoff_ = is_open() ? limits_.backoff_min : std::min(backoff_ * 2, limits_.backoff_max);
        shut_until_ = now + backoff_;
        probing_ = false;
    }

    void on_abandoned() { probing_ = false; }

    // When allows() may change by itself.
    [[nodiscard]] std::optional<TimePoint> reopens_at() const {
        return probing_ ? std::nullopt : shut_until_;
    }

private:
    Limits limits_{};
    std::optional<TimePoint> shut_until_;
    Duration backoff_{};
    bool probing_ = false;
};

}  // namespace stoker::sidecar
