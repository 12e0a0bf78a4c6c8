#include "sidecar/s3/s3_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/origin/s3_xml.h"
#include "tests/support/test_seed.h"

namespace stoker::s3 {
namespace {

S3Call call_of(std::string path, std::string query, std::string host = "127.0.0.1:9711") {
    RequestHead head;
    head.method = "GET";
    head.path = std::move(path);
    head.query = std::move(query);
    head.headers = {{"Host", std::move(host)}};
    return parse_call(std::move(head)).value();
}

TEST(S3Call, FindsBucketAndKeyInThePath) {
    const S3Call call = call_of("/bucket/a/b%2Bc%20%C3%A9", "");
    EXPECT_EQ(call.bucket, "bucket");
    EXPECT_EQ(call.key, "a/b+c \xC3\xA9");
    EXPECT_EQ(call_of("/bucket", "").key, "");
    EXPECT_EQ(call_of("/bucket/", "").bucket, "bucket");
    EXPECT_EQ(call_of("/", "").bucket, "");
    EXPECT_EQ(call_of("/b//x/../y", "").key, "/x/../y");
}

TEST(S3Call, FindsTheBucketInTheHost) {
    for (const char* host :
         {"data.127.0.0.1:9711", "data.localhost:9711", "data.localhost", "data.LOCALHOST:1"}) {
        const S3Call call = call_of("/a/b", "", host);
        EXPECT_EQ(call.bucket, "data") << host;
        EXPECT_EQ(call.key, "a/b") << host;
    }
    EXPECT_EQ(call_of("/a/b", "", "localhost:9711").bucket, "a");
}

TEST(S3Call, DecodesTheQuery) {
    const S3Call call = call_of("/b", "prefix=a%2Fb+c&uploads&x=");
    EXPECT_EQ(call.parameter("prefix"), "a/b c");
    EXPECT_EQ(call.parameter("uploads"), "");
    EXPECT_EQ(call.parameter("absent"), std::nullopt);
}

TEST(S3Call, RefusesBrokenEncoding) {
    for (const char* path : {"/b/%", "/b/%4", "/b/%4g", "/b/%00"}) {
        RequestHead head;
        head.path = path;
        EXPECT_FALSE(parse_call(head)) << path;
    }
}

TEST(S3Call, DecodingRevertsEncoding) {
    std::mt19937_64 random{test::seed()};
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (auto left = random() % 40; left > 0; --left) {
            text += static_cast<char>(1 + random() % 255);
        }
        EXPECT_EQ(
            sidecar::percent_decode(sidecar::percent_encode(text, round % 2 == 0), false), text);
    }
}

}  // namespace
}  // namespace stoker::s3
