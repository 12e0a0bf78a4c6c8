#pragma once

#include <mutex>

#include "common/metrics/metrics.h"

namespace stoker::metrics {

// Metrics of this process, named as Prometheus' client libraries name them, and stoker_build_info.
// Declare it once per registry, which must outlive it.
class ProcessMetrics {
public:
    explicit ProcessMetrics(Registry& registry);

    // Reads /proc; a number that cannot be read keeps its last value. Thread-safe.
    void collect();

private:
    void read_status();
    void count_descriptors();

    std::mutex mutex_;  // one collection at a time
    Counter& cpu_;
    Gauge& resident_;
    Gauge& anonymous_;
    Gauge& virtual_;
    Gauge& threads_;
    Gauge& open_fds_;
    Gauge& max_fds_;
};

}  // namespace stoker::metrics
