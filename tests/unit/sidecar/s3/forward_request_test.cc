#include "sidecar/s3/forward_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::s3 {
namespace {

using testing::HasSubstr;

const sidecar::Credentials kReal{"REAL", "real secret", "token"};
const WallTime kNow{std::chrono::sys_days{std::chrono::May / 24 / 2013}};

S3Call call_of(std::string method, std::string bucket, std::string key, http::Headers headers) {
    S3Call call;
    call.head.method = std::move(method);
    call.head.headers = std::move(headers);
    call.bucket = std::move(bucket);
    call.key = std::move(key);
    return call;
}

sidecar::S3Location origin(bool path_style) {
    return {"https", "s3.example.com", "data", "train/", "eu-west-1", path_style};
}

std::string header(const ForwardRequest& request, std::string_view name) {
    const std::string* value = http::find_header(request.headers, name);
    return value == nullptr ? "" : *value;
}

TEST(ForwardRequest, IsSignedWithThePodsOwnKey) {
    const auto request = forward_request(
        call_of(
            "GET",
            "other",
            "a b+c",
            {{"Host", "127.0.0.1:9711"},
             {"Authorization", "AWS4-HMAC-SHA256 Credential=loop"},
             {"X-Amz-Date", "20130524T000001Z"},
             {"X-Amz-Security-Token", "loop"},
             {"Range", "bytes=0-1"},
             {"Connection", "keep-alive"},
             {"TE", "trailers"}}),
        origin(true),
        kReal,
        kNow);
    EXPECT_EQ(request.url, "https://s3.example.com/other/a%20b%2Bc");
    EXPECT_EQ(header(request, "host"), "s3.example.com");
    EXPECT_THAT(header(request, "authorization"), HasSubstr("Credential=REAL/20130524/eu-west-1"));
    EXPECT_EQ(header(request, "x-amz-security-token"), "token");
    EXPECT_EQ(header(request, "x-amz-date"), "20130524T000000Z");
    EXPECT_EQ(header(request, "range"), "bytes=0-1");
    EXPECT_EQ(header(request, "connection"), "");
    EXPECT_EQ(header(request, "te"), "");
    for (const http::Header& each : request.headers) {
        EXPECT_EQ(each.value.find("loop"), std::string::npos) << each.name;
    }
}

TEST(ForwardRequest, UsesTheOriginsStyle) {
    EXPECT_EQ(
        forward_request(call_of("GET", "other", "k", {}), origin(false), kReal, kNow).url,
        "https://other.s3.example.com/k");
    EXPECT_EQ(
        forward_request(call_of("GET", "with.dot", "k", {}), origin(false), kReal, kNow).url,
        "https://s3.example.com/with.dot/k");
    EXPECT_EQ(
        forward_request(call_of("GET", "", "", {}), origin(false), kReal, kNow).url,
        "https://s3.example.com/");
}

TEST(ForwardRequest, IsAnonymousWithoutCredentials) {
    const auto request =
        forward_request(call_of("GET", "b", "k", {}), origin(true), std::nullopt, kNow);
    EXPECT_EQ(header(request, "authorization"), "");
    EXPECT_EQ(header(request, "host"), "s3.example.com");
}

TEST(ForwardRequest, KeepsHashesThatTheOriginCanCheck) {
    const std::string digest(64, 'a');
    for (const std::string& hash :
         {digest,
          std::string{"UNSIGNED-PAYLOAD"},
          std::string{"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}}) {
        S3Call call = call_of(
            "PUT",
            "b",
            "k",
            {{"x-amz-content-sha256", hash}, {"x-amz-trailer", "x-amz-checksum-crc32"}});
        call.head.content_length = 5;
        const auto request = forward_request(call, origin(true), kReal, kNow);
        EXPECT_EQ(header(request, "x-amz-content-sha256"), hash);
        EXPECT_EQ(header(request, "x-amz-trailer"), "x-amz-checksum-crc32");
        EXPECT_FALSE(request.decodes_chunks);
        EXPECT_EQ(request.length, 5U);
    }
}

TEST(ForwardRequest, DecodesChunksSignedWithTheLoopbackKey) {
    S3Call call = call_of(
        "PUT",
        "b",
        "k",
        {{"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"},
         {"x-amz-decoded-content-length", "1000"},
         {"x-amz-trailer", "x-amz-checksum-crc32"},
         {"Content-Encoding", "gzip, aws-chunked"}});
    call.head.content_length = 1100;
    const auto request = forward_request(call, origin(true), kReal, kNow);
    EXPECT_TRUE(request.decodes_chunks);
    EXPECT_EQ(request.length, 1000U);
    EXPECT_EQ(header(request, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    EXPECT_EQ(header(request, "content-encoding"), "gzip");
    EXPECT_EQ(header(request, "x-amz-trailer"), "");
    EXPECT_EQ(header(request, "x-amz-decoded-content-length"), "");
}

TEST(ForwardRequest, PresignedUrlsBecomeSignedHeaders) {
    S3Call call = call_of("GET", "b", "k", {});
    call.query = {{"X-Amz-Signature", "s"}, {"X-Amz-Credential", "loop"}, {"acl", ""}};
    const auto request = forward_request(call, origin(true), kReal, kNow);
    EXPECT_EQ(request.url, "https://s3.example.com/b/k?acl=");
}

TEST(ForwardRequest, OwnContinuationTokensBecomeStartAfter) {
    S3Call call = call_of("GET", "b", "", {});
    call.query = {
        {"list-type", "2"}, {"continuation-token", "stoker-k6162"}, {"start-after", "older"}};
    const auto request = forward_request(call, origin(true), kReal, kNow);
    EXPECT_EQ(request.url, "https://s3.example.com/b/?list-type=2&start-after=ab");
}

}  // namespace
}  // namespace stoker::s3
