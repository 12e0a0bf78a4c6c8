#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/domain/residency_word.h"
#include "sidecar/core/circuit_breaker.h"
#include "sidecar/core/engine_limits.h"
#include "sidecar/core/rate_limiter.h"

namespace stoker::sidecar {

// Whether the origin may be read and the disk written, and if not, why. Knows nothing of samples.
// Pure: no timers inside. Not thread-safe.
struct FetchAdmission {
    explicit FetchAdmission(const EngineLimits& limits)
        : resident(limits.store_breaker),
          window(limits.store_breaker),
          origin(limits.origin_breaker) {}

    CircuitBreaker resident;  // writes of residents to the store
    CircuitBreaker window;    // writes of window samples to the store
    CircuitBreaker origin;    // prefetches from the origin
    RateLimiter rate;         // demands may overdraw it by one second's worth
    std::string store_error;
    std::string origin_error;  // empty after the next successful fetch

    CircuitBreaker& store(domain::SegmentClass segment_class) {
        return segment_class == domain::SegmentClass::kResident ? resident : window;
    }

    // False while the disk is full or failing; store_error says why.
    [[nodiscard]] bool is_admitting() const { return resident.is_closed() && window.is_closed(); }

    // Call after a sample was stored: the store works and, without `from_peer`, the origin, too.
    void on_stored(domain::SegmentClass segment_class, bool from_peer = false) {
        store(segment_class).on_success();
        // Closes both breakers: residents have the stricter limit (reservedFree). If all samples
        // are resident, no window sample follows that could close the window's breaker.
        if (resident.is_closed()) {
            window.on_success();
        }
        if (!from_peer) {
            origin.on_success();
            origin_error.clear();
        }
        if (is_admitting()) {
            store_error.clear();
        }
    }

    // When the rate limit or a breaker may next allow more without another event; nullopt: never.
    // `demands`: whether demands wait for the rate limit.
    [[nodiscard]] std::optional<TimePoint> next_change(bool demands, TimePoint now) const {
        auto next = rate.allows_at(now);
        for (const auto at :
             {demands ? rate.allows_urgent_at(now) : std::nullopt,
              resident.retries_at(),
              window.retries_at(),
              origin.retries_at()}) {
            if (at > now) {
                next = std::min(next.value_or(*at), *at);
            }
        }
        return next;
    }
};

}  // namespace stoker::sidecar
