#include "sidecar/s3/object_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::s3 {
namespace {

const std::chrono::sys_seconds kTime{std::chrono::seconds{784111777}};
const ObjectFacts kFacts{100, "abc", kTime};

std::optional<ObjectAnswer> ask(http::Headers headers, const ObjectFacts& facts = kFacts) {
    RequestHead head;
    head.method = "GET";
    head.headers = std::move(headers);
    return answer_object(head, facts);
}

ObjectAnswer ask_range(const std::string& range, const ObjectFacts& facts = kFacts) {
    return ask({{"Range", range}}, facts).value();
}

TEST(ObjectAnswer, IsTheWholeObjectWithoutRange) {
    EXPECT_EQ(ask({}), (ObjectAnswer{200, 0, 100}));
}

TEST(ObjectAnswer, CutsRanges) {
    EXPECT_EQ(ask_range("bytes=0-9"), (ObjectAnswer{206, 0, 10}));
    EXPECT_EQ(ask_range("bytes=99-99"), (ObjectAnswer{206, 99, 1}));
    EXPECT_EQ(ask_range("bytes=90-"), (ObjectAnswer{206, 90, 10}));
    EXPECT_EQ(ask_range("bytes=90-1000"), (ObjectAnswer{206, 90, 10}));
    EXPECT_EQ(ask_range("bytes=0-99999999999999999999"), (ObjectAnswer{206, 0, 100}));
    EXPECT_EQ(ask_range("bytes=-10"), (ObjectAnswer{206, 90, 10}));
    EXPECT_EQ(ask_range("bytes=-1000"), (ObjectAnswer{206, 0, 100}));
}

TEST(ObjectAnswer, RefusesRangesBehindTheEnd) {
    for (const char* range :
         {"bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999-"}) {
        EXPECT_EQ(ask_range(range).status, 416) << range;
    }
    EXPECT_EQ(ask_range("bytes=0-", {0, "abc", kTime}).status, 416);
}

TEST(ObjectAnswer, IgnoresRangesOfAnotherForm) {
    for (const char* range :
         {"bytes=", "bytes=-", "bytes=a-b", "bytes=5-4", "lines=0-1", "bytes=1", "bytes= 1-2"}) {
        EXPECT_EQ(ask_range(range).status, 200) << range;
    }
}

TEST(ObjectAnswer, LeavesSeveralRangesAndIfRangeToTheOrigin) {
    EXPECT_EQ(ask({{"Range", "bytes=0-1,4-5"}}), std::nullopt);
    EXPECT_EQ(ask({{"Range", "bytes=0-1"}, {"If-Range", "\"abc\""}}), std::nullopt);
}

TEST(ObjectAnswer, ComparesEtagsForIfMatchAndIfNoneMatch) {
    EXPECT_EQ(ask({{"If-Match", "\"abc\""}})->status, 200);
    EXPECT_EQ(ask({{"If-Match", "abc"}})->status, 200);
    EXPECT_EQ(ask({{"If-Match", "*"}})->status, 200);
    EXPECT_EQ(ask({{"If-Match", "\"x\", \"abc\""}})->status, 200);
    EXPECT_EQ(ask({{"If-Match", "\"abcd\""}})->status, 412);
    EXPECT_EQ(ask({{"If-None-Match", "\"abc\""}})->status, 304);
    EXPECT_EQ(ask({{"If-None-Match", "W/\"abc\""}})->status, 304);
    EXPECT_EQ(ask({{"If-None-Match", "\"x\""}})->status, 200);
}

TEST(ObjectAnswer, ComparesTimes) {
    const std::string then = http_date(kTime);
    const std::string before = http_date(kTime - std::chrono::seconds{1});
    EXPECT_EQ(ask({{"If-Modified-Since", then}})->status, 304);
    EXPECT_EQ(ask({{"If-Modified-Since", before}})->status, 200);
    EXPECT_EQ(ask({{"If-Unmodified-Since", then}})->status, 200);
    EXPECT_EQ(ask({{"If-Unmodified-Since", before}})->status, 412);
    EXPECT_EQ(ask({{"If-Modified-Since", "yesterday"}})->status, 200);
}

TEST(ObjectAnswer, EtagsDecideBeforeTimes) {
    const std::string then = http_date(kTime);
    const std::string before = http_date(kTime - std::chrono::seconds{1});
    EXPECT_EQ(ask({{"If-Match", "\"abc\""}, {"If-Unmodified-Since", before}})->status, 200);
    EXPECT_EQ(ask({{"If-None-Match", "\"x\""}, {"If-Modified-Since", then}})->status, 200);
    EXPECT_EQ(ask({{"If-Match", "\"x\""}, {"If-None-Match", "\"abc\""}})->status, 412);
}

TEST(ObjectAnswer, WritesDates) {
    EXPECT_EQ(http_date(kTime), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace stoker::s3
