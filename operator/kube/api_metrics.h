#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/metrics/metrics.h"
#include "operator/kube/transport.h"

namespace stoker::control {

// Metrics of requests to the API server, named as client-go's. One for all transports of a program.
// Thread-safe.
class ApiMetrics {
public:
    ApiMetrics();

    // Counts one request as it was sent; `outcome` is an error if there was no response. A watch
    // counts when it ends, and its time is not observed, because the server decides when it ends.
    void observe(const ApiRequest& request, const Result<ApiResponse>& outcome, Duration took);

    [[nodiscard]] std::string expose() const { return registry_.expose(); }

private:
    metrics::Registry registry_;
    metrics::CounterFamily& requests_;
    metrics::HistogramFamily& seconds_;
};

}  // namespace stoker::control
