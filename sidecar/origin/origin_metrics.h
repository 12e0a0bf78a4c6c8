#pragma once

#include "common/metrics/metrics.h"

namespace stoker::sidecar {

// Metrics of all origins of the program; must outlive them.
struct OriginMetrics {
    explicit OriginMetrics(metrics::Registry& registry);

    metrics::CounterFamily&
        requests;  // by operation (list, get) and outcome (HTTP status, or an error code)
    metrics::Counter& retries;
    metrics::Counter& received_bytes;  // payload, including that of failed attempts
    metrics::Histogram& first_byte_seconds;
    metrics::CounterFamily& failed_objects;  // by error code; after all retries
};

}  // namespace stoker::sidecar
