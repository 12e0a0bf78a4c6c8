#include "sidecar/s3/verify_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::s3 {
namespace {

// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization
// Header" and "Authenticating Requests: Using Query Parameters", with the published example keys.
const LoopbackKey kKey{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
const WallTime kDate{std::chrono::sys_days{std::chrono::May / 24 / 2013}};

RequestHead get_object_example() {
    RequestHead head;
    head.method = "GET";
    head.path = "/test.txt";
    head.headers = {
        {"Host", "examplebucket.s3.amazonaws.com"},
        {"Authorization",
         "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
         "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
         "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
        {"Range", "bytes=0-9"},
        {"x-amz-content-sha256", std::string{sidecar::kEmptyPayloadHash}},
        {"x-amz-date", "20130524T000000Z"}};
    return head;
}

RequestHead presigned_example() {
    RequestHead head;
    head.method = "GET";
    head.path = "/test.txt";
    head.query =
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F"
        "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
        "X-Amz-SignedHeaders=host&X-Amz-Signature="
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    head.headers = {{"Host", "examplebucket.s3.amazonaws.com"}};
    return head;
}

std::string verdict(RequestHead head, WallTime now = kDate, const LoopbackKey& key = kKey) {
    const auto error = verify_signature(parse_call(std::move(head)).value(), key, now);
    return error ? error->code : "good";
}

void set(RequestHead& head, std::string_view name, std::string value) {
    for (http::Header& header : head.headers) {
        if (http::equal_ignoring_case(header.name, name)) {
            header.value = std::move(value);
        }
    }
}

TEST(VerifySignature, AcceptsTheGetObjectExample) {
    EXPECT_EQ(verdict(get_object_example()), "good");
    RequestHead blanks = get_object_example();
    std::string text{blanks.header("authorization")};
    text.insert(text.find("SignedHeaders"), " ");
    text.insert(text.find("Signature="), " ");
    set(blanks, "authorization", text);
    EXPECT_EQ(verdict(blanks), "good");
}

TEST(VerifySignature, AcceptsTheListObjectsExample) {
    RequestHead head = get_object_example();
    head.path = "/";
    head.query = "max-keys=2&prefix=J";
    set(head,
        "authorization",
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date,"
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    EXPECT_EQ(verdict(head), "good");
}

TEST(VerifySignature, AcceptsThePresignedExampleUntilItExpires) {
    EXPECT_EQ(verdict(presigned_example()), "good");
    EXPECT_EQ(verdict(presigned_example(), kDate + std::chrono::hours{24}), "good");
    EXPECT_EQ(verdict(presigned_example(), kDate + std::chrono::hours{25}), "AccessDenied");
}

TEST(VerifySignature, PresignedUrlsLiveForAWeekAtMost) {
    RequestHead head = presigned_example();
    head.query.replace(head.query.find("86400"), 5, "604801");
    EXPECT_EQ(verdict(head, kDate + std::chrono::hours{1}), "AccessDenied");
}

TEST(VerifySignature, EveryChangeIsRefused) {
    RequestHead other_path = get_object_example();
    other_path.path = "/test2.txt";
    EXPECT_EQ(verdict(other_path), "SignatureDoesNotMatch");
    RequestHead other_method = get_object_example();
    other_method.method = "DELETE";
    EXPECT_EQ(verdict(other_method), "SignatureDoesNotMatch");
    RequestHead other_query = get_object_example();
    other_query.query = "acl";
    EXPECT_EQ(verdict(other_query), "SignatureDoesNotMatch");
    RequestHead other_header = get_object_example();
    set(other_header, "range", "bytes=0-10");
    EXPECT_EQ(verdict(other_header), "SignatureDoesNotMatch");
    RequestHead other_hash = get_object_example();
    set(other_hash, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    EXPECT_EQ(verdict(other_hash), "SignatureDoesNotMatch");
}

TEST(VerifySignature, CutSignaturesAreRefused) {
    for (const std::size_t cut : {1U, 63U, 64U}) {
        RequestHead head = get_object_example();
        std::string text{head.header("authorization")};
        text.resize(text.size() - cut);
        set(head, "authorization", text);
        EXPECT_EQ(verdict(head), "SignatureDoesNotMatch") << cut;
    }
}

TEST(VerifySignature, NamesWhatIsWrong) {
    EXPECT_EQ(
        verdict(get_object_example(), kDate, {"AKIAOTHER", kKey.secret_access_key}),
        "InvalidAccessKeyId");
    EXPECT_EQ(
        verdict(get_object_example(), kDate, {kKey.access_key_id, "another secret"}),
        "SignatureDoesNotMatch");
    RequestHead none = get_object_example();
    set(none, "authorization", "");
    EXPECT_EQ(verdict(none), "AccessDenied");
    RequestHead old = get_object_example();
    set(old, "authorization", "AWS AKIAIOSFODNN7EXAMPLE:abc");
    EXPECT_EQ(verdict(old), "AccessDenied");
    RequestHead hostless = get_object_example();
    std::string text{hostless.header("authorization")};
    text.replace(text.find("host;"), 5, "");
    set(hostless, "authorization", text);
    EXPECT_EQ(verdict(hostless), "AuthorizationHeaderMalformed");
}

TEST(VerifySignature, ClocksMayDifferByFifteenMinutes) {
    for (const auto skew : {std::chrono::minutes{15}, std::chrono::minutes{-15}}) {
        EXPECT_EQ(verdict(get_object_example(), kDate + skew), "good");
    }
    for (const auto skew : {std::chrono::minutes{16}, std::chrono::minutes{-16}}) {
        EXPECT_EQ(verdict(get_object_example(), kDate + skew), "RequestTimeTooSkewed");
    }
}

TEST(VerifySignature, ReadsTimes) {
    EXPECT_EQ(parse_amz_time("20130524T000000Z"), kDate);
    for (const char* wrong :
         {"",
          "20130524T0000Z",
          "20131324T000000Z",
          "20130524 000000Z",
          "20130524T250000Z",
          "2013-5-4T000000Z"}) {
        EXPECT_EQ(parse_amz_time(wrong), std::nullopt) << wrong;
    }
}

}  // namespace
}  // namespace stoker::s3
