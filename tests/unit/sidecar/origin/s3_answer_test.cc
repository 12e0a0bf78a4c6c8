#include "sidecar/origin/s3_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const WallTime kNow{1'000'000s};
const ExpectedBytes kWhole{"abc", 100, std::nullopt};
const ExpectedBytes kPart{"abc", 100, ByteRange{10, 20}};

TEST(S3Answer, AcceptsTheListedObject) {
    EXPECT_FALSE(check_object_head(kWhole, 200, {{"ETag", "\"abc\""}, {"Content-Length", "100"}}));
    EXPECT_FALSE(check_object_head(kWhole, 200, {{"etag", "W/\"abc\""}}));
    EXPECT_FALSE(check_object_head(
        kPart,
        206,
        {{"ETag", "\"abc\""}, {"Content-Length", "20"}, {"Content-Range", "bytes 10-29/100"}}));
}

TEST(S3Answer, AnotherObjectIsAPermanentConflict) {
    const http::Header etag{"ETag", "\"abc\""};
    const std::vector<std::pair<ExpectedBytes, std::pair<int, http::Headers>>> cases = {
        {kWhole, {200, {{"ETag", "\"other\""}}}},
        {kWhole, {200, {}}},
        {kWhole, {200, {etag, {"Content-Length", "101"}}}},
        {kPart, {206, {etag}}},
        {kPart, {206, {etag, {"Content-Range", "bytes 10-29/101"}}}},
        {kPart, {206, {etag, {"Content-Range", "bytes 0-19/100"}}}},
        {kPart, {206, {etag, {"Content-Range", "bytes 10-29/100"}, {"Content-Length", "19"}}}},
    };
    for (const auto& [expected, answer] : cases) {
        const auto failure = check_object_head(expected, answer.first, answer.second);
        ASSERT_TRUE(failure.has_value());
        EXPECT_EQ(failure->error.code, ErrorCode::kConflict) << failure->error.message;
        EXPECT_FALSE(failure->may_pass);
    }
}

TEST(S3Answer, RefusesAServerThatIgnoresTheRange) {
    const auto failure = check_object_head(kPart, 200, {{"ETag", "\"abc\""}});
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(failure->error.message, HasSubstr("answers 200 where 206 was due"));
}

std::string error_document(const std::string& code, const std::string& message) {
    return "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>";
}

TEST(S3Answer, QuotesTheOriginsError) {
    const auto failure = failure_of_status(
        404, {}, error_document("NoSuchBucket", "The specified bucket does not exist"), kNow);
    EXPECT_EQ(failure.error.message, "404 NoSuchBucket: The specified bucket does not exist");
    EXPECT_EQ(
        failure_of_status(502, {}, "<html>\nBad gateway", kNow).error.message,
        "502 '<html> Bad gateway'");
    EXPECT_EQ(failure_of_status(500, {}, "", kNow).error.message, "500 without an explanation");
    EXPECT_EQ(
        failure_of_status(301, {{"x-amz-bucket-region", "eu-west-1"}}, "", kNow).error.message,
        "301 without an explanation (the bucket is in region eu-west-1)");
}

TEST(S3Answer, MapsStatusesToCodesAndRetryability) {
    struct Case {
        int status;
        std::string code;
        ErrorCode want;
        bool may_pass;
    };

    for (const Case& one : {
             Case{403, "AccessDenied", ErrorCode::kForbidden, false},
             Case{401, "", ErrorCode::kForbidden, false},
             Case{403, "SignatureDoesNotMatch", ErrorCode::kForbidden, false},
             Case{404, "NoSuchKey", ErrorCode::kNotFound, false},
             Case{412, "PreconditionFailed", ErrorCode::kConflict, false},
             Case{416, "InvalidRange", ErrorCode::kConflict, false},
             Case{400, "InvalidRequest", ErrorCode::kInvalidArgument, false},
             Case{400, "RequestTimeout", ErrorCode::kUnavailable, true},
             Case{400, "ExpiredToken", ErrorCode::kForbidden, true},
             Case{429, "", ErrorCode::kUnavailable, true},
             Case{500, "InternalError", ErrorCode::kUnavailable, true},
             Case{503, "SlowDown", ErrorCode::kUnavailable, true},
             Case{501, "NotImplemented", ErrorCode::kUnavailable, false},
             Case{307, "TemporaryRedirect", ErrorCode::kInvalidArgument, false},
         }) {
        SCOPED_TRACE(std::to_string(one.status) + one.code);
        const auto failure = failure_of_status(one.status, {}, error_document(one.code, "m"), kNow);
        EXPECT_EQ(failure.error.code, one.want);
        EXPECT_EQ(failure.may_pass, one.may_pass);
    }
}

TEST(S3Answer, PassesRetryAfterOn) {
    EXPECT_EQ(failure_of_status(503, {{"Retry-After", "3"}}, "", kNow).retry_after, 3s);
    EXPECT_EQ(failure_of_status(503, {{"Retry-After", "x"}}, "", kNow).retry_after, std::nullopt);
}

TEST(S3Answer, RetriesTransportFailuresButNotBadCertificates) {
    EXPECT_TRUE(failure_of_transport({ErrorCode::kUnavailable, "reset"}).may_pass);
    const auto slow = failure_of_transport({ErrorCode::kDeadlineExceeded, "slow"});
    EXPECT_TRUE(slow.may_pass);
    EXPECT_EQ(slow.error.code, ErrorCode::kUnavailable) << "a read cannot half happen";
    EXPECT_FALSE(failure_of_transport({ErrorCode::kForbidden, "certificate"}).may_pass);
}

TEST(S3Answer, ReadsWholeObjectChecksums) {
    EXPECT_EQ(stored_crc32c({{"x-amz-checksum-crc32c", "4waSgw=="}}), 0xE3069283U) << "123456789";
    EXPECT_EQ(stored_crc32c({{"x-amz-checksum-crc32c", "4waSgw==-3"}}), std::nullopt);
    EXPECT_EQ(
        stored_crc32c(
            {{"x-amz-checksum-crc32c", "4waSgw=="}, {"x-amz-checksum-type", "COMPOSITE"}}),
        std::nullopt);
    EXPECT_EQ(stored_crc32c({{"x-amz-checksum-crc32c", "!!!!!!!!"}}), std::nullopt);
    EXPECT_EQ(stored_crc32c({}), std::nullopt);
}

}  // namespace
}  // namespace stoker::sidecar
