#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

// The link to the origin: every request waits for one of `requests_max` slots and then for the
// latency; the transfers share the bandwidth one after the other. Requests must come in order of
// `now`. O(1). Not thread-safe.
class OriginLink {
public:
    explicit OriginLink(const OriginSpec& spec)
        : latency_(spec.latency),
          bytes_per_second_(static_cast<double>(spec.bytes_per_second.count())),
          done_(spec.requests_max, TimePoint{}) {}

    // Starts a request. Returns when its whole answer will have arrived.
    TimePoint transfer(TimePoint now, Bytes bytes) {
        // Answers end in the order of their requests, so the oldest slot is the first to be free.
        TimePoint& slot = done_[next_];
        next_ = (next_ + 1) % done_.size();
        busy_until_ = std::max(std::max(now, slot) + latency_, busy_until_) + transfer_time(bytes);
        slot = busy_until_;
        return busy_until_;
    }

    // Duration of a request that has the link for itself.
    [[nodiscard]] Duration request_time(Bytes bytes) const {
        return latency_ + transfer_time(bytes);
    }

private:
    [[nodiscard]] Duration transfer_time(Bytes bytes) const {
        const double seconds = static_cast<double>(bytes.count()) / bytes_per_second_;
        return Duration{static_cast<Duration::rep>(seconds * 1e9)};
    }

    Duration latency_;
    double bytes_per_second_;
    std::vector<TimePoint> done_;  // by slot
    std::size_t next_ = 0;
    TimePoint busy_until_{};
};

}  // namespace stoker::simulate
