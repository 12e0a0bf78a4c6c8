#pragma once

#include <functional>

#include "common/base/result.h"
#include "common/http/http_server.h"
#include "common/metrics/metrics.h"

namespace stoker::http {

// What a program answers to probes. Both run on the server's thread, so they must be thread-safe
// and quick.
struct Probes {
    std::function<Status()> healthy = [] { return Status{}; };  // an error: restart me
    std::function<Status()> ready = [] { return Status{}; };    // an error: no work for me now
};

// GET /metrics, /healthz and /readyz: 200, or 503 with the error's message. Anything else is 404,
// other methods 405. `registry` must outlive the server.
Handler diagnostics_handler(const metrics::Registry& registry, Probes probes);

}  // namespace stoker::http
