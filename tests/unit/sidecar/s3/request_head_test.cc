#include "sidecar/s3/request_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::s3 {
namespace {

TEST(RequestHead, ReadsLineAndHeaders) {
    const std::string text =
        "GET /bucket/a%20b?x=1&y HTTP/1.1\r\nHost: h\r\nRange:  bytes=0-1 \r\n\r\nrest";
    const ParsedHead parsed = parse_head(text);
    ASSERT_EQ(parsed.state, HeadState::kComplete);
    EXPECT_EQ(text.substr(parsed.bytes), "rest");
    EXPECT_EQ(parsed.head.method, "GET");
    EXPECT_EQ(parsed.head.path, "/bucket/a%20b");
    EXPECT_EQ(parsed.head.query, "x=1&y");
    EXPECT_EQ(parsed.head.header("range"), "bytes=0-1");
    EXPECT_EQ(parsed.head.header("absent"), "");
    EXPECT_TRUE(parsed.head.keep_alive);
    EXPECT_FALSE(parsed.head.has_body());
}

TEST(RequestHead, EveryPrefixIsIncomplete) {
    const std::string text = "PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n";
    for (std::size_t length = 0; length < text.size(); ++length) {
        EXPECT_EQ(parse_head(text.substr(0, length)).state, HeadState::kIncomplete) << length;
    }
    EXPECT_EQ(parse_head(text).head.content_length, 3U);
}

TEST(RequestHead, SkipsEmptyLinesBeforeIt) {
    const ParsedHead parsed = parse_head("\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    ASSERT_EQ(parsed.state, HeadState::kComplete);
    EXPECT_FALSE(parsed.head.keep_alive);
}

TEST(RequestHead, RefusesWhatTwoParsersReadDifferently) {
    for (const char* text : {
             "GET  / HTTP/1.1\r\n\r\n",
             "get / HTTP/1.1\r\n\r\n",
             "GET / HTTP/2.0\r\n\r\n",
             "GET http://h/ HTTP/1.1\r\n\r\n",
             "GET /#f HTTP/1.1\r\n\r\n",
             "GET /\x01 HTTP/1.1\r\n\r\n",
             "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
             "GET / HTTP/1.1\r\n: h\r\n\r\n",
             "GET / HTTP/1.1\r\nA: 1\r\n folded\r\n\r\n",
             "GET / HTTP/1.1\r\nA: 1\nB: 2\r\n\r\n",
             "GET / HTTP/1.1\r\nA: 1\rB: 2\r\n\r\n",
             "PUT / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
             "PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
             "PUT / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
             "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
             "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
         }) {
        EXPECT_EQ(parse_head(text).state, HeadState::kMalformed) << text;
    }
}

TEST(RequestHead, IsBounded) {
    const std::string line = "GET /" + std::string(kHeadBytesMax, 'a');
    EXPECT_EQ(parse_head(line).state, HeadState::kTooLarge);
    std::string many = "GET / HTTP/1.1\r\n";
    for (std::size_t at = 0; at <= kHeadersMax; ++at) {
        many += "A: b\r\n";
    }
    EXPECT_EQ(parse_head(many + "\r\n").state, HeadState::kMalformed);
}

TEST(RequestHead, RandomBytesNeverGoBeyondTheInput) {
    std::mt19937_64 random{test::seed()};
    constexpr std::string_view kPieces[] = {
        "GET ",
        "/",
        " HTTP/1.1",
        "\r\n",
        "\r",
        "\n",
        ":",
        "A",
        " ",
        "Content-Length: 5",
        "?",
        "\xff"};
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        for (auto left = random() % 12; left > 0; --left) {
            text += kPieces[random() % std::size(kPieces)];
        }
        const ParsedHead parsed = parse_head(text);
        ASSERT_LE(parsed.bytes, text.size()) << text;
        ASSERT_TRUE(parsed.state != HeadState::kComplete || parsed.head.path.starts_with('/'));
    }
}

}  // namespace
}  // namespace stoker::s3
