#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/circuit_breaker.h"

namespace stoker::sidecar {

struct EngineLimits {
    Bytes window = mib(256);  // record bytes of window samples: unread, held or in flight
    Bytes memory = mib(64);   // payload bytes of fetches in flight
    // Fetches in flight of the own party, and as many again of peers; guests get the slots that the
    // own party leaves. Samples of one chunk that are fetched together count as one fetch.
    std::uint32_t max_in_flight = 32;
    Bytes readahead = mib(32);  // residents announced to the page cache ahead of each reader
    Bytes page_cache = Bytes::unlimited();            // beyond: readers drop residents from it
    Duration adopt_grace = std::chrono::seconds{10};  // for window samples found at the start
    CircuitBreaker::Limits store_breaker{};
    CircuitBreaker::Limits origin_breaker{std::chrono::milliseconds{250}, std::chrono::seconds{10}};

    // Memory for all samples that are fetched in parts; the rest is for samples fetched whole.
    [[nodiscard]] Bytes parts_memory() const { return Bytes{memory.count() / 2}; }

    // Whether a sample of this size is requested from the origin in parts: in one piece it would
    // take more than half of the memory.
    [[nodiscard]] bool takes_parts(Bytes payload) const { return payload > parts_memory(); }

    // Whether the sample fits into a segment; a larger one cannot be stored.
    static bool is_storable(Bytes payload) {
        return payload + kib(1) <= Bytes{domain::kSegmentBytesMax};
    }
};

// Samples that are fetched in parts at a time: each takes long, and reserves its whole size in the
// grant or the window. One more is allowed if a client waits for it and for none of the others.
constexpr std::uint32_t kPartedMax = 2;

constexpr double kGuestShare = 0.1;

// Fetches that guests may always have in flight, besides the own party's max_in_flight. With so
// few, an own epoch on a shared, saturated link takes at most a tenth longer.
constexpr std::uint32_t guest_slots(std::uint32_t max_in_flight) {
    return std::max(static_cast<std::uint32_t>(max_in_flight * kGuestShare), 1U);
}

// Bytes that may be resident here, and until when new residents may be admitted. No end: unlimited.
struct EngineGrant {
    Bytes resident_bytes{};
    std::optional<TimePoint> valid_until;
    std::uint64_t origin_bytes_per_second = 0;  // core/rate_limiter.h; 0: no limit; never expires
    // Set: samples that this node owns are fetched without a reader, at this rate
    // (core/fill_scan.h); 0: only origin_bytes_per_second limits these fetches.
    std::optional<std::uint64_t> fill_bytes_per_second{};

    // False: the operator has not granted anything yet.
    [[nodiscard]] bool is_ordered() const { return valid_until != TimePoint{}; }
};

// Totals since the start.
struct EngineCounters {
    std::uint64_t demanded_samples = 0;
    std::uint64_t demand_ready_samples = 0;     // already stored when requested
    std::uint64_t demand_bypassed_samples = 0;  // answered with kReadAtOrigin
    std::uint64_t demand_failed_samples = 0;    // answered with kOriginError
    std::uint64_t fetches = 0;
    std::uint64_t peer_fetches = 0;  // of all fetches: those begun at a peer
    std::uint64_t stored_samples = 0;
    std::uint64_t stored_bytes = 0;  // payload
    std::uint64_t origin_failures = 0;
    std::uint64_t store_failures = 0;
    std::uint64_t corrupt_samples = 0;
    std::uint64_t dropped_window_samples = 0;    // after all their readers had read them
    std::uint64_t evicted_window_samples = 0;    // before all readers had read them, to make room
    std::uint64_t dropped_resident_samples = 0;  // because the grant shrank
    std::uint64_t evicted_resident_samples = 0;  // because the policy preferred others
    std::uint64_t ended_holds = 0;               // ended because the own party was beyond its share

    bool operator==(const EngineCounters&) const = default;
};

}  // namespace stoker::sidecar
