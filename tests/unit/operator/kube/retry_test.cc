#include <gtest/gtest.h>

#include "operator/kube/rest_client.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

Result<ApiResponse> answer(int status, const std::string& retry = "") {
    ApiResponse response;
    response.status = status;
    response.retry_after = retry;
    return response;
}

TEST(RetryAfter, RepeatsAnyVerbWithRetryAfter) {
    for (const Verb verb : {Verb::kGet, Verb::kPost, Verb::kPatch, Verb::kDelete}) {
        EXPECT_EQ(retry_after(verb, answer(429, "3"), 1, {}), seconds{3});
        EXPECT_EQ(retry_after(verb, answer(503, "0"), 1, {}), seconds{0});
    }
}

TEST(RetryAfter, ResponsesWithoutRetryAfterAreFinal) {
    EXPECT_EQ(retry_after(Verb::kGet, answer(429), 1, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kGet, answer(500), 1, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kGet, answer(409, "3"), 1, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kGet, answer(200, "3"), 1, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kGet, answer(429, "soon"), 1, {}), std::nullopt);
}

TEST(RetryAfter, RepeatsOnlyReadsAfterConnectionLoss) {
    const Result<ApiResponse> broken = fail(ErrorCode::kUnavailable, "reset");
    EXPECT_EQ(retry_after(Verb::kGet, broken, 1, {}), seconds{1});
    EXPECT_EQ(retry_after(Verb::kPost, broken, 1, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kPatch, broken, 1, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kDelete, broken, 1, {}), std::nullopt);
    const Result<ApiResponse> late = fail(ErrorCode::kDeadlineExceeded, "30 s");
    EXPECT_EQ(retry_after(Verb::kGet, late, 1, {}), std::nullopt);
}

TEST(RetryAfter, LimitsTriesAndWaits) {
    EXPECT_EQ(retry_after(Verb::kGet, answer(429, "3600"), 1, {}), seconds{30});
    EXPECT_NE(retry_after(Verb::kGet, answer(429, "1"), 9, {}), std::nullopt);
    EXPECT_EQ(retry_after(Verb::kGet, answer(429, "1"), 10, {}), std::nullopt);
}

}  // namespace
}  // namespace stoker::control
