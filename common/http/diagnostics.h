#pragma once

#include <functional>

#include "common/base/result.h"
#include "common/http/http_server.h"
#include "common/metrics/metrics.h"

namespace stoker::http {

// A program's answers to probes. Both run on the server's thread, so they must be thread-safe and
// quick.
struct Probes {
    std::function<Status()> healthy = [] { return Status{}; };  // an error: restart the container
    std::function<Status()> ready = [] { return Status{}; };    // an error: send no traffic now
};

// GET /metrics, /healthz and /readyz: 200, or 503 with the error's message. Other paths: 404; other
// methods: 405. `registry` must outlive the server.
Handler diagnostics_handler(const metrics::Registry& registry, Probes probes);

}  // namespace stoker::http
