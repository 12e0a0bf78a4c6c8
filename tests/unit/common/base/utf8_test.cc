#include "common/base/utf8.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Utf8Prefix, IsTheWholeTextWhereItFits) {
    EXPECT_EQ(utf8_prefix("", 0), "");
    EXPECT_EQ(utf8_prefix("abc", 3), "abc");
    EXPECT_EQ(utf8_prefix("a\xc3\xa4", 3), "a\xc3\xa4");
}

TEST(Utf8Prefix, NeverCutsACharacter) {
    EXPECT_EQ(utf8_prefix("abc", 2), "ab");
    EXPECT_EQ(
        utf8_prefix(
            "a\xc3\xa4"
            "b",
            2),
        "a");
    EXPECT_EQ(utf8_prefix("\xf0\x9f\x94\xa5!", 3), "");
    EXPECT_EQ(utf8_prefix("\xf0\x9f\x94\xa5!", 4), "\xf0\x9f\x94\xa5");
}

}  // namespace
}  // namespace stoker
