#pragma once

#include "common/metrics/metrics.h"

namespace stoker::sidecar {

// What an origin counts. One for the program, shared by its origins; must outlive them.
struct OriginMetrics {
    explicit OriginMetrics(metrics::Registry& registry);

    metrics::CounterFamily&
        requests;  // by operation (list, get) and outcome (HTTP status, or an error code)
    metrics::Counter& retries;
    metrics::Counter& received_bytes;  // payload only, wasted attempts included
    metrics::Histogram& first_byte_seconds;
    metrics::CounterFamily& failed_objects;  // by error code; after all retries
};

}  // namespace stoker::sidecar
