#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/origin/s3_request.h"

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;

// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization
// Header: Transferring Payload in a Single Chunk", with the published example keys.
const Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const SigningScope kScope{"us-east-1", "s3"};
const WallTime kDate{std::chrono::sys_days{std::chrono::May / 24 / 2013}};

UnsignedRequest to_example_bucket(std::string path, Query query = {}) {
    UnsignedRequest request;
    request.path = std::move(path);
    request.query = std::move(query);
    request.headers = {{"Host", "examplebucket.s3.amazonaws.com"}};
    return request;
}

std::string authorization_of(const UnsignedRequest& request) {
    const auto headers = sign(request, kScope, kExample, kDate);
    const std::string* value = http::find_header(headers, "Authorization");
    return value == nullptr ? "" : *value;
}

TEST(SigV4, SignsTheGetObjectExample) {
    UnsignedRequest request = to_example_bucket("/test.txt");
    request.headers.push_back({"Range", "bytes=0-9"});
    EXPECT_EQ(
        authorization_of(request),
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, SignsThePutObjectExample) {
    UnsignedRequest request = to_example_bucket("/test%24file.text");
    request.method = "PUT";
    request.payload_hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    request.headers.push_back({"Date", "Fri, 24 May 2013 00:00:00 GMT"});
    request.headers.push_back({"x-amz-storage-class", "REDUCED_REDUNDANCY"});
    EXPECT_THAT(
        authorization_of(request),
        HasSubstr("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(SigV4, SignsTheGetBucketLifecycleExample) {
    EXPECT_THAT(
        authorization_of(to_example_bucket("/", {{"lifecycle", ""}})),
        HasSubstr("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(SigV4, SignsTheListObjectsExample) {
    EXPECT_THAT(
        authorization_of(to_example_bucket("/", {{"prefix", "J"}, {"max-keys", "2"}})),
        HasSubstr("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(SigV4, BuildsTheCanonicalRequestOfTheSpecification) {
    UnsignedRequest request = to_example_bucket("/test.txt");
    request.headers.push_back({"Range", "bytes=0-9"});
    request.headers.push_back({"X-Amz-Date", "20130524T000000Z"});
    request.headers.push_back({"x-amz-content-sha256", std::string{kEmptyPayloadHash}});
    EXPECT_EQ(
        canonical_request(request),
        "GET\n"
        "/test.txt\n"
        "\n"
        "host:examplebucket.s3.amazonaws.com\n"
        "range:bytes=0-9\n"
        "x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
        "x-amz-date:20130524T000000Z\n"
        "\n"
        "host;range;x-amz-content-sha256;x-amz-date\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(
        string_to_sign(request, kScope, kDate),
        "AWS4-HMAC-SHA256\n"
        "20130524T000000Z\n"
        "20130524/us-east-1/s3/aws4_request\n"
        "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
}

TEST(SigV4, OrdersTheQueryByEncodedNames) {
    EXPECT_EQ(
        canonical_query({{"prefix", "a b/\u00e9+"}, {"list-type", "2"}, {"a-z", ""}, {"a%", "1"}}),
        "a%25=1&a-z=&list-type=2&prefix=a%20b%2F%C3%A9%2B");
    EXPECT_EQ(canonical_query({}), "");
}

TEST(SigV4, JoinsAndTrimsHeaderValues) {
    UnsignedRequest request = to_example_bucket("/");
    request.headers.push_back({"X-Two", "  a   b  "});
    request.headers.push_back({"x-two", "c"});
    EXPECT_THAT(canonical_request(request), HasSubstr("\nx-two:a b,c\n"));
}

TEST(SigV4, SendsAndSignsTheSessionToken) {
    Credentials temporary = kExample;
    temporary.session_token = "token/with+signs=";
    const auto headers = sign(to_example_bucket("/"), kScope, temporary, kDate);
    ASSERT_NE(http::find_header(headers, "x-amz-security-token"), nullptr);
    EXPECT_EQ(*http::find_header(headers, "x-amz-security-token"), "token/with+signs=");
    EXPECT_THAT(
        *http::find_header(headers, "Authorization"),
        HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
}

}  // namespace
}  // namespace stoker::sidecar
