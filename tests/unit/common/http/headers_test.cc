#include "common/http/headers.h"

#include <gtest/gtest.h>

namespace stoker::http {
namespace {

TEST(Headers, AreFoundInAnyCase) {
    const Headers headers = {{"Content-Type", "text/plain"}, {"ETag", "\"a\""}, {"etag", "\"b\""}};
    ASSERT_NE(find_header(headers, "eTAG"), nullptr);
    EXPECT_EQ(*find_header(headers, "eTAG"), "\"a\"") << "the first of two";
    EXPECT_EQ(find_header(headers, "Content-Typ"), nullptr);
    EXPECT_EQ(find_header({}, "ETag"), nullptr);
}

TEST(Headers, IgnoreCaseOfAsciiLettersOnly) {
    EXPECT_TRUE(equal_ignoring_case("If-Match", "IF-MATCH"));
    EXPECT_FALSE(equal_ignoring_case("@a", "`a")) << "0x40 and 0x60 differ by the case bit too";
    EXPECT_FALSE(equal_ignoring_case("a", "ab"));
}

}  // namespace
}  // namespace stoker::http
