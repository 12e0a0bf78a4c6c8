#include "sidecar/s3/forward_bound.h"

#include <gtest/gtest.h>

namespace stoker::s3 {
namespace {

S3Call call_with(http::Headers headers) {
    S3Call call;
    call.head.method = "GET";
    call.head.headers = std::move(headers);
    return call;
}

TEST(ForwardBound, UnboundRequestStaysUnchanged) {
    for (const ForwardBound& bound : {ForwardBound{}, ForwardBound{"e", false}}) {
        const S3Call call =
            bound_call(call_with({{"Range", "bytes=1-2"}, {"If-Match", "\"a\""}}), bound);
        EXPECT_EQ(call.head.header("range"), "bytes=1-2");
        EXPECT_EQ(call.head.header("if-match"), "\"a\"");
    }
}

TEST(ForwardBound, RequestForAWholeResponseGetsIfMatch) {
    const S3Call call = bound_call(
        call_with({{"Range", "bytes=1-2"}, {"if-match", "*"}, {"If-None-Match", "\"b\""}}),
        {"e", true, 0, 0, 100});
    EXPECT_EQ(call.head.header("range"), "bytes=1-2");
    EXPECT_EQ(call.head.header("if-match"), "\"e\"");
    EXPECT_EQ(call.head.header("if-none-match"), "\"b\"");
}

TEST(ForwardBound, RequestForTheRestOfAnObjectHasItsRangeAndNoConditionButIfMatch) {
    const ForwardBound bound{"e", true, 30, 20, 100};
    const S3Call call = bound_call(
        call_with(
            {{"Range", "bytes=10-49"},
             {"If-None-Match", "\"b\""},
             {"If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"},
             {"x-amz-request-payer", "requester"}}),
        bound);
    EXPECT_EQ(call.head.header("range"), "bytes=30-49");
    EXPECT_EQ(call.head.header("if-match"), "\"e\"");
    EXPECT_EQ(call.head.header("if-none-match"), "");
    EXPECT_EQ(call.head.header("if-modified-since"), "");
    EXPECT_EQ(call.head.header("x-amz-request-payer"), "requester");
    EXPECT_EQ(bound.content_range(), "bytes 30-49/100");
}

}  // namespace
}  // namespace stoker::s3
