#pragma once

#include <cstdint>

// Frames of the local protocol by which a sidecar asks its trainers what the cache is worth. Part
// of protocol.h.
namespace stoker::local {

// Asks whether there is something to measure.
struct AskProbe {
    bool operator==(const AskProbe&) const = default;
};

// Read `batches` batches through the cache, then as many past it, once for each id. The samples and
// their order stay what they are. `id` 0: there is nothing to measure.
struct Probe {
    std::uint64_t id = 0;
    std::uint32_t batches = 0;

    bool operator==(const Probe&) const = default;
};

// What this connection has measured of the probe so far; the times are from one batch asked for to
// the next one asked for. Said when reading past the cache begins and ends, and when all is done.
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
