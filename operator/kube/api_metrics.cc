#include "operator/kube/api_metrics.h"

#include <chrono>

namespace stoker::control {

namespace {

// 5 ms to 82 s.
std::vector<double> latency_bounds() {
    constexpr double kFirst = 0.005;
    constexpr double kFactor = 2;
    constexpr std::size_t kCount = 15;
    return metrics::exponential_bounds(kFirst, kFactor, kCount);
}

}  // namespace

ApiMetrics::ApiMetrics()
    : requests_(registry_.counter_family(
          "rest_client_requests_total",
          "Requests to the API server by HTTP method and status, or `<error>` without a response.",
          {"method", "code"})),
      seconds_(registry_.histogram_family(
          "rest_client_request_duration_seconds",
          "Time from sending a request to the API server to the end of its response, by HTTP "
          "method; LIST: a GET of many objects. Watches are not counted.",
          {"verb"},
          latency_bounds())) {}

void ApiMetrics::observe(
    const ApiRequest& request, const Result<ApiResponse>& outcome, Duration took) {
    const std::string method{to_string(request.verb)};
    requests_.with({method, outcome ? std::to_string(outcome->status) : "<error>"})->add();
    if (request.traffic != Traffic::kWatch) {
        const std::string verb = request.traffic == Traffic::kList ? "LIST" : method;
        seconds_.with({verb})->observe(std::chrono::duration<double>(took).count());
    }
}

}  // namespace stoker::control
