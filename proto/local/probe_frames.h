#pragma once

#include <cstdint>

// Frames by which a sidecar measures the cache's benefit with its trainers. Part of protocol.h.
namespace stoker::local {

// Asks the sidecar whether there is a measurement to make.
struct AskProbe {
    bool operator==(const AskProbe&) const = default;
};

// Requests `batches` batches through the cache, then as many past it, once per id. The samples and
// their order stay the same. `id` 0: nothing to measure.
struct Probe {
    std::uint64_t id = 0;
    std::uint32_t batches = 0;

    bool operator==(const Probe&) const = default;
};

// This connection's results of the probe so far; times are from one batch request to the next. Sent
// when reading past the cache begins and ends, and at the end of the measurement.
struct Probed {
    std::uint64_t id = 0;
    bool bypassing = false;  // from now on this connection reads past the cache
    std::uint64_t bypassed_batches = 0;
    std::uint64_t bypassed_ns = 0;
    std::uint64_t bypassed_bytes = 0;
    std::uint64_t cached_batches = 0;
    std::uint64_t cached_ns = 0;
    std::uint64_t cached_bytes = 0;

    bool operator==(const Probed&) const = default;
};

}  // namespace stoker::local
