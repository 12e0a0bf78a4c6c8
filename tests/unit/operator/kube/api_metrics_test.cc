#include "operator/kube/api_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using testing::HasSubstr;
using testing::Not;

void observe(ApiMetrics& metrics, Verb verb, Traffic traffic, int status) {
    ApiRequest request;
    request.verb = verb;
    request.traffic = traffic;
    ApiResponse response;
    response.status = status;
    metrics.observe(request, response, std::chrono::seconds{1});
}

TEST(ApiMetrics, CountsByHttpMethodAndStatus) {
    ApiMetrics metrics;
    observe(metrics, Verb::kGet, Traffic::kUnary, 200);
    observe(metrics, Verb::kGet, Traffic::kList, 200);
    observe(metrics, Verb::kGet, Traffic::kWatch, 200);
    observe(metrics, Verb::kPatch, Traffic::kUnary, 409);
    metrics.observe({}, fail(ErrorCode::kUnavailable, "refused"), Duration::zero());
    const std::string told = metrics.expose();
    EXPECT_THAT(told, HasSubstr("rest_client_requests_total{method=\"GET\",code=\"200\"} 3\n"));
    EXPECT_THAT(told, HasSubstr("rest_client_requests_total{method=\"GET\",code=\"<error>\"} 1\n"));
    EXPECT_THAT(told, HasSubstr("rest_client_requests_total{method=\"PATCH\",code=\"409\"} 1\n"));
    EXPECT_THAT(told, Not(HasSubstr("method=\"LIST\"")));
}

TEST(ApiMetrics, SeparatesListLatencyAndOmitsWatches) {
    ApiMetrics metrics;
    observe(metrics, Verb::kGet, Traffic::kList, 200);
    observe(metrics, Verb::kGet, Traffic::kWatch, 200);
    const std::string told = metrics.expose();
    EXPECT_THAT(told, HasSubstr("rest_client_request_duration_seconds_count{verb=\"LIST\"} 1\n"));
    EXPECT_THAT(told, Not(HasSubstr("verb=\"GET\"")));
    EXPECT_THAT(told, Not(HasSubstr("verb=\"WATCH\"")));
}

}  // namespace
}  // namespace stoker::control
