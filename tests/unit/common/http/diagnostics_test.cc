#include "common/http/diagnostics.h"

#include <gtest/gtest.h>

namespace stoker::http {
namespace {

ServerRequest request(std::string method, std::string target) {
    ServerRequest made;
    made.method = std::move(method);
    made.target = std::move(target);
    return made;
}

TEST(Diagnostics, ServesMetricsInPrometheusFormat) {
    metrics::Registry registry;
    registry.counter("x_total", "X.").add(2);
    const auto response = diagnostics_handler(registry, {})(request("GET", "/metrics?format=text"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
    EXPECT_EQ(response.body, "# HELP x_total X.\n# TYPE x_total counter\nx_total 2\n");
}

TEST(Diagnostics, FailedProbesStateTheReason) {
    const metrics::Registry registry;
    bool loading = true;
    Probes probes;
    probes.ready = [&]() -> Status {
        return loading ? Status{fail(ErrorCode::kUnavailable, "manifest not loaded")} : Status{};
    };
    const Handler handler = diagnostics_handler(registry, probes);
    EXPECT_EQ(handler(request("GET", "/healthz")).status, 200);
    EXPECT_EQ(handler(request("GET", "/readyz")).status, 503);
    EXPECT_EQ(handler(request("GET", "/readyz")).body, "manifest not loaded\n");
    loading = false;
    EXPECT_EQ(handler(request("GET", "/readyz")).status, 200);
}

TEST(Diagnostics, RejectsOtherPathsAndMethods) {
    const metrics::Registry registry;
    const Handler handler = diagnostics_handler(registry, {});
    EXPECT_EQ(handler(request("GET", "/")).status, 404);
    EXPECT_EQ(handler(request("GET", "/healthz/x")).status, 404);
    EXPECT_EQ(handler(request("POST", "/healthz")).status, 405);
}

}  // namespace
}  // namespace stoker::http
