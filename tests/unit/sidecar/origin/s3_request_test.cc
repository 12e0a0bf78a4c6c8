#include "sidecar/origin/s3_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;
using testing::Not;

const WallTime kNow{std::chrono::sys_days{std::chrono::May / 24 / 2013}};
const Credentials kKeys{"id", "secret", ""};

S3Location location(
    std::string_view uri,
    std::string_view endpoint = "http://e:7070",
    std::optional<bool> path_style = {}) {
    auto parsed = parse_s3_location(uri, endpoint, "us-east-1", path_style);
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    return parsed.value_or(S3Location{});
}

std::string url_of_key(const S3Location& where, const std::string& key) {
    return get_request(where, key, "e", std::nullopt, std::nullopt, kNow).url;
}

TEST(S3Request, ParsesLocations) {
    EXPECT_EQ(location("s3://b").prefix, "");
    EXPECT_EQ(location("s3://b/").prefix, "");
    EXPECT_EQ(location("s3://b/train").prefix, "train/");
    EXPECT_EQ(location("s3://b/a b/%41/").prefix, "a b/%41/") << "taken literally";
    EXPECT_EQ(location("s3://b/train").describe(), "s3://b/train/ at http://e:7070");
    EXPECT_EQ(location("s3://b", "").describe(), "s3://b/ at https://s3.us-east-1.amazonaws.com");
    EXPECT_EQ(location("s3://b", "https://h:443/").host, "h") << "the scheme's own port";
    EXPECT_EQ(location("s3://b", "http://[::1]:9000").host, "[::1]:9000");
}

TEST(S3Request, RefusesInvalidLocations) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "http://e"},
        {"gs://b", "http://e"},
        {"s3://", "http://e"},
        {"s3:///key", "http://e"},
        {"s3://a b/x", "http://e"},
        {"s3://../x", "http://e"},
        {"s3://b", "e:7070"},
        {"s3://b", "ftp://e"},
        {"s3://b", "http://"},
        {"s3://b", "http://e/base"},
        {"s3://b", "http://user@e"},
    };
    for (const auto& [uri, endpoint] : cases) {
        const auto parsed = parse_s3_location(uri, endpoint, "r", std::nullopt);
        ASSERT_FALSE(parsed.has_value()) << uri << " " << endpoint;
        EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    }
}

TEST(S3Request, KnowsAmazonsHostsInChina) {
    const auto parsed = parse_s3_location("s3://b", "", "cn-north-1", std::nullopt);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(url_of_key(*parsed, "k"), "https://b.s3.cn-north-1.amazonaws.com.cn/k");
}

TEST(S3Request, ChoosesTheAddressingStyle) {
    EXPECT_EQ(url_of_key(location("s3://b/p"), "k"), "http://e:7070/b/p/k");
    EXPECT_EQ(
        url_of_key(location("s3://b/p", ""), "k"), "https://b.s3.us-east-1.amazonaws.com/p/k");
    EXPECT_EQ(url_of_key(location("s3://b.c", ""), "k"), "https://s3.us-east-1.amazonaws.com/b.c/k")
        << "a dot would not match the certificate";
    EXPECT_EQ(url_of_key(location("s3://b", "http://e:7070", false), "k"), "http://b.e:7070/k");
    EXPECT_EQ(
        url_of_key(location("s3://b", "", true), "k"), "https://s3.us-east-1.amazonaws.com/b/k");
}

TEST(S3Request, EncodesOddKeysOnceAndNormalisesNothing) {
    const S3Location where = location("s3://b");
    EXPECT_EQ(url_of_key(where, "a b+c%d.jpg"), "http://e:7070/b/a%20b%2Bc%25d.jpg");
    EXPECT_EQ(url_of_key(where, "x/../y//z/./w"), "http://e:7070/b/x/../y//z/./w");
    EXPECT_EQ(url_of_key(where, "q?x#f"), "http://e:7070/b/q%3Fx%23f");
    EXPECT_EQ(url_of_key(where, "\u00fc/\u96ea"), "http://e:7070/b/%C3%BC/%E9%9B%AA");
}

TEST(S3Request, ListsWithPrefixAndToken) {
    const auto first = list_request(location("s3://b/a b"), "", std::nullopt, kNow);
    EXPECT_EQ(
        first.url, "http://e:7070/b/?encoding-type=url&list-type=2&max-keys=1000&prefix=a%20b%2F");
    EXPECT_EQ(first.method, "GET");
    const auto next = list_request(location("s3://b"), "t/+=", std::nullopt, kNow);
    EXPECT_THAT(next.url, HasSubstr("?continuation-token=t%2F%2B%3D&"));
    EXPECT_THAT(next.url, Not(HasSubstr("prefix")));
}

TEST(S3Request, SignsOnlyWithCredentials) {
    const auto anonymous = get_request(location("s3://b"), "k", "e", {}, std::nullopt, kNow);
    EXPECT_EQ(http::find_header(anonymous.headers, "Authorization"), nullptr);
    const auto mine = get_request(location("s3://b"), "k", "e", {}, kKeys, kNow);
    ASSERT_NE(http::find_header(mine.headers, "Authorization"), nullptr);
    EXPECT_THAT(
        *http::find_header(mine.headers, "Authorization"),
        HasSubstr(
            "Credential=id/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;if-match;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date,"));
    EXPECT_EQ(*http::find_header(mine.headers, "Host"), "e:7070");
}

TEST(S3Request, RequestsTheListedVersionAndRange) {
    const auto whole = get_request(location("s3://b"), "k", "abc-2", {}, std::nullopt, kNow);
    EXPECT_EQ(*http::find_header(whole.headers, "If-Match"), "\"abc-2\"");
    EXPECT_EQ(http::find_header(whole.headers, "Range"), nullptr);
    const auto part =
        get_request(location("s3://b"), "k", "e", ByteRange{8, 4}, std::nullopt, kNow);
    EXPECT_EQ(*http::find_header(part.headers, "Range"), "bytes=8-11");
}

}  // namespace
}  // namespace stoker::sidecar
