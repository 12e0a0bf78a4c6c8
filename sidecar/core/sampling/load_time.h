#pragma once

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/clock.h"

namespace stoker::sidecar {

// Fits the time of a request to the origin by its size: latency + size / bandwidth, by least
// squares over the last thousand or so requests. A request counts with at most eight times the mean
// time, or 8 m times for an object of m > 1 times the mean size, so that one stalled request does
// not set the latency. Pure. Not thread-safe.
class LoadTime {
public:
    // Adds a measured request. `time`: OriginBytes::request_time.
    void note(Bytes size, Duration time);

    // Latency x bandwidth in bytes: the size whose transfer takes as long as the latency; infinite
    // if larger objects take no longer, or not significantly. Rounded to a power of two, so that it
    // rarely changes from epoch to epoch. nullopt: fewer than 64 requests so far, or all of one
    // size.
    [[nodiscard]] std::optional<double> latency_bytes() const;

private:
    std::uint64_t noted_ = 0;
    // Means over requests, with more weight on recent ones. The mean product is in bytes x seconds.
    double bytes_ = 0;
    double seconds_ = 0;
    double bytes_squared_ = 0;
    double seconds_squared_ = 0;
    double product_ = 0;
};

}  // namespace stoker::sidecar
