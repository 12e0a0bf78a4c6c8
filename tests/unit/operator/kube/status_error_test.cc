#include "operator/kube/status_error.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

TEST(ReadFailure, MapsEachResponseToItsErrorCode) {
    struct Case {
        int status;
        const char* body;
        ErrorCode want;
    };

    const Case cases[] = {
        {400, "", ErrorCode::kInvalidArgument},
        {401, "", ErrorCode::kForbidden},
        {403, "", ErrorCode::kForbidden},
        {403,
         R"({"kind":"Status","reason":"Forbidden","message":"no","details":{"causes":[{"reason":"NamespaceTerminating"}]}})",
         ErrorCode::kGone},
        {404, "", ErrorCode::kNotFound},
        {409,
         R"({"kind":"Status","reason":"AlreadyExists","message":"x"})",
         ErrorCode::kAlreadyExists},
        {409, R"({"kind":"Status","reason":"Conflict","message":"x"})", ErrorCode::kConflict},
        {410, "", ErrorCode::kGone},
        {415, "", ErrorCode::kInvalidArgument},
        {422, "", ErrorCode::kInvalidArgument},
        {429, "", ErrorCode::kUnavailable},
        {500, "", ErrorCode::kUnavailable},
        {503, "<html>", ErrorCode::kUnavailable},
        {504, "", ErrorCode::kDeadlineExceeded},
        {507, "", ErrorCode::kResourceExhausted},
        {302, "", ErrorCode::kInternal},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.status);
        EXPECT_EQ(read_failure(c.status, c.body).error().code, c.want);
    }
}

TEST(ReadFailure, KeepsTheServersMessageAndReason) {
    const auto failure = read_failure(
        409,
        R"({"kind":"Status","code":409,"reason":"Conflict","message":"Apply failed with 1 conflict",
            "details":{"causes":[{"reason":"FieldManagerConflict","message":"owned by kubectl","field":".spec.x"}]}})");
    EXPECT_EQ(failure.error().message, "Apply failed with 1 conflict (Conflict)");
    EXPECT_TRUE(failure.has_cause("FieldManagerConflict"));
    EXPECT_EQ(
        failure.causes,
        (std::vector<StatusCause>{{"FieldManagerConflict", "owned by kubectl", ".spec.x"}}));
}

TEST(ReadFailure, ShortensAProxysPageToOneLine) {
    const auto failure = read_failure(502, "<html>\n<body>\tBad\r\n" + std::string(5000, 'x'));
    const std::string text = failure.error().message;
    EXPECT_LT(text.size(), 300U);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_NE(text.find("502"), std::string::npos);
}

TEST(ReadFailure, PrefersTheRetryAfterHeaderToTheBody) {
    const char* body =
        R"({"kind":"Status","message":"slow down","details":{"retryAfterSeconds":7}})";
    EXPECT_EQ(read_failure(429, body, "3").retry_after, std::chrono::seconds{3});
    EXPECT_EQ(read_failure(429, body).retry_after, std::chrono::seconds{7});
    EXPECT_EQ(read_failure(429, "", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after, std::nullopt);
    EXPECT_EQ(read_failure(429, "", "-1").retry_after, std::nullopt);
    EXPECT_EQ(read_failure(429, "", "99999999999").retry_after, std::chrono::hours{24});
}

TEST(ReadFailure, DetectsExpiredAndTooLargeVersions) {
    EXPECT_TRUE(read_failure(410, "").is_expired());
    EXPECT_TRUE(read_failure(400, R"({"kind":"Status","reason":"Expired"})").is_expired());
    EXPECT_FALSE(read_failure(404, "").is_expired());
    EXPECT_TRUE(
        read_failure(
            504, R"({"kind":"Status","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}})")
            .is_resource_version_too_large());
    EXPECT_TRUE(
        read_failure(
            504, R"({"kind":"Status","message":"Too large resource version: 9, current: 3"})")
            .is_resource_version_too_large());
    EXPECT_FALSE(read_failure(504, "").is_resource_version_too_large());
}

}  // namespace
}  // namespace stoker::control
