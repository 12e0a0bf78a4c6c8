#include "sidecar/origin/http_answer.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/origin/http_credentials.h"
#include "sidecar/origin/http_version.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using http::Headers;
using testing::HasSubstr;

const Headers kTagged = {{"ETag", "\"abc\""}};
const http::Header kThen{"Last-Modified", "Tue, 14 Nov 2023 22:13:20 GMT"};  // 1700000000
const http::Header kLater{"Date", "Tue, 14 Nov 2023 22:13:22 GMT"};

const ExpectedBytes kWhole{"\"abc\"", 100, std::nullopt};
const ExpectedBytes kPart{"\"abc\"", 100, ByteRange{10, 20}};

Headers with(Headers headers, const http::Header& more) {
    headers.push_back(more);
    return headers;
}

TEST(HttpAnswer, AcceptsTheListedObject) {
    EXPECT_FALSE(check_http_head(kWhole, 200, with(kTagged, {"Content-Length", "100"})));
    EXPECT_FALSE(check_http_head(kWhole, 200, {{"etag", "W/\"abc\""}}));
    EXPECT_FALSE(check_http_head(kPart, 206, with(kTagged, {"Content-Range", "bytes 10-29/100"})));
    EXPECT_FALSE(check_http_head(kPart, 200, with(kTagged, {"Content-Length", "100"})))
        << "a small object may be read whole";
    EXPECT_FALSE(check_http_head({"@1700000000", 5}, 200, {kThen, kLater}));
}

TEST(HttpAnswer, AnotherObjectIsAConflict) {
    const std::vector<std::pair<ExpectedBytes, std::pair<int, Headers>>> cases = {
        {kWhole, {200, {{"ETag", "\"other\""}}}},
        {kWhole, {200, {kThen, kLater}}},
        {kWhole, {200, with(kTagged, {"Content-Length", "99"})}},
        {kPart, {206, kTagged}},
        {kPart, {206, with(kTagged, {"Content-Range", "bytes 10-29/99"})}},
        {kPart, {206, with(kTagged, {"Content-Range", "bytes 0-19/100"})}},
        {kPart, {206, with(kTagged, {"Content-Range", "bytes 10-29/*"})}},
        {kPart, {200, with(kTagged, {"Content-Length", "20"})}},
        {{"@1700000001", 5}, {200, {kThen, kLater}}},
        {{"@1700000000", 5}, {200, {kLater}}},
    };
    for (const auto& [expected, answer] : cases) {
        const auto failure = check_http_head(expected, answer.first, answer.second);
        ASSERT_TRUE(failure.has_value());
        EXPECT_EQ(failure->error.code, ErrorCode::kConflict) << failure->error.message;
        EXPECT_FALSE(failure->may_pass);
    }
}

TEST(HttpAnswer, RefusesBodiesThatAreNotTheObject) {
    for (const auto& [status, headers] : std::vector<std::pair<int, Headers>>{
             {203, kTagged},
             {204, kTagged},
             {206, kTagged},
             {200, with(kTagged, {"Content-Encoding", "gzip"})}}) {
        const auto failure = check_http_head(kWhole, status, headers);
        ASSERT_TRUE(failure.has_value()) << status;
        EXPECT_EQ(failure->error.code, ErrorCode::kInvalidArgument) << failure->error.message;
    }
    EXPECT_FALSE(check_http_head(kWhole, 200, with(kTagged, {"Content-Encoding", "Identity"})));
}

TEST(HttpAnswer, LargeObjectsNeedRanges) {
    const std::uint64_t bytes = (16U << 20U) + 1;
    const auto failure = check_http_head({"\"abc\"", bytes, ByteRange{0, 5}}, 200, kTagged);
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(failure->error.message, HasSubstr("does not answer range requests"));
}

TEST(HttpVersion, IsTheEtagOrTheTime) {
    EXPECT_EQ(http_version_of(with(kTagged, kThen)), "\"abc\"");
    EXPECT_EQ(http_version_of({{"ETag", "W/\"abc\""}}), "W/\"abc\"");
    EXPECT_EQ(http_version_of({kThen}), "@1700000000");
    EXPECT_EQ(http_version_of({{"ETag", "\"\""}, kThen}), "@1700000000");
    EXPECT_EQ(http_version_of({{"ETag", "abc"}, kThen}), "@1700000000");
    EXPECT_EQ(http_version_of({}), std::nullopt);
    EXPECT_EQ(http_version_of({{"Last-Modified", "yesterday"}}), std::nullopt);
}

TEST(HttpVersion, IsAConditionUnlessTheEtagIsWeak) {
    EXPECT_EQ(http_condition("\"abc\""), (http::Header{"If-Match", "\"abc\""}));
    EXPECT_EQ(http_condition("W/\"abc\""), std::nullopt);
    EXPECT_EQ(http_condition("@1700000000"), (http::Header{"If-Unmodified-Since", kThen.value}));
}

TEST(HttpVersion, ATimeMustBeOver) {
    for (const char* date : {"Tue, 14 Nov 2023 22:13:21 GMT", "Tue, 14 Nov 2023 22:13:19 GMT"}) {
        const auto failure = check_http_version("@1700000000", {kThen, {"Date", date}});
        ASSERT_TRUE(failure.has_value()) << date;
        EXPECT_TRUE(failure->may_pass);
        EXPECT_EQ(failure->error.code, ErrorCode::kUnavailable);
    }
    const auto undated = check_http_version("@1700000000", {kThen});
    ASSERT_TRUE(undated.has_value());
    EXPECT_EQ(undated->error.code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(undated->may_pass);
}

// nginx makes its ETag from the time and the size.
TEST(HttpVersion, TheTimeOfAnEtagMustBeOver) {
    const Headers same_second =
        with(with(kTagged, kThen), {"Date", "Tue, 14 Nov 2023 22:13:21 GMT"});
    const auto failure = check_http_version("\"abc\"", same_second);
    ASSERT_TRUE(failure.has_value());
    EXPECT_TRUE(failure->may_pass);
    EXPECT_EQ(failure->error.code, ErrorCode::kUnavailable);
    EXPECT_FALSE(check_http_version("\"abc\"", with(with(kTagged, kThen), kLater)));
    EXPECT_FALSE(check_http_version("\"abc\"", with(kTagged, kThen)));
    EXPECT_EQ(check_http_version("\"other\"", same_second)->error.code, ErrorCode::kConflict);
}

TEST(HttpAnswer, KnowsAPage) {
    for (const char* type : {"text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"}) {
        const auto failure = check_no_page({{"content-type", type}});
        ASSERT_TRUE(failure.has_value()) << type;
        EXPECT_EQ(failure->error.code, ErrorCode::kInvalidArgument);
        EXPECT_FALSE(failure->may_pass);
    }
    EXPECT_FALSE(check_no_page({{"Content-Type", "text/plain"}}));
    EXPECT_FALSE(check_no_page({}));
}

TEST(HttpStatus, SaysWhetherARetryMayHelp) {
    const auto busy = failure_of_http_status(503, {{"Retry-After", "7"}}, {});
    EXPECT_TRUE(busy.may_pass);
    EXPECT_EQ(busy.retry_after, 7s);
    EXPECT_EQ(busy.error.message, "the server answers 503");
    for (const auto& [status, code] : std::vector<std::pair<int, ErrorCode>>{
             {304, ErrorCode::kInvalidArgument},
             {401, ErrorCode::kForbidden},
             {403, ErrorCode::kForbidden},
             {404, ErrorCode::kNotFound},
             {410, ErrorCode::kNotFound},
             {412, ErrorCode::kConflict},
             {416, ErrorCode::kConflict},
             {501, ErrorCode::kUnavailable}}) {
        const auto failure = failure_of_http_status(status, {}, {});
        EXPECT_EQ(failure.error.code, code) << status;
        EXPECT_FALSE(failure.may_pass) << status;
    }
}

TEST(HttpCredentials, AreATokenOrAUserWithPassword) {
    const test::TempFolder folder;
    const SystemClock clock;
    const auto write = [&](const char* name, const std::string& text) {
        std::ofstream{folder.path() + "/" + name} << text;
    };
    EXPECT_TRUE(http_credentials(folder.path(), clock)->is_missing());
    write("username", "me\n");
    const auto half = http_credentials(folder.path(), clock)->get();
    ASSERT_FALSE(half.has_value());
    EXPECT_THAT(half.error().message, HasSubstr("password"));
    write("password", "pa:ss\n");
    const auto basic = http_credentials(folder.path(), clock);
    EXPECT_FALSE(basic->is_missing());
    EXPECT_EQ(authorization(*basic->get()), (http::Header{"Authorization", "Basic bWU6cGE6c3M="}));
    write("token", "t0k");
    EXPECT_EQ(
        authorization(*http_credentials(folder.path(), clock)->get()),
        (http::Header{"Authorization", "Bearer t0k"}));
    write("token", "a\r\nb");
    EXPECT_FALSE(http_credentials(folder.path(), clock)->get().has_value());
    EXPECT_EQ(authorization(std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace stoker::sidecar
