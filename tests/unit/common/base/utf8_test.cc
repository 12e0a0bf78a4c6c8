#include "common/base/utf8.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Utf8Prefix, ReturnsTheWholeTextIfItFits) {
    EXPECT_EQ(utf8_prefix("", 0), "");
    EXPECT_EQ(utf8_prefix("abc", 3), "abc");
    EXPECT_EQ(utf8_prefix("a\xc3\xa4", 3), "a\xc3\xa4");
}

TEST(Utf8Prefix, NeverSplitsACharacter) {
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

TEST(PrintableUtf8, KeepsValidCharacters) {
    EXPECT_EQ(printable_utf8(""), "");
    EXPECT_EQ(printable_utf8("a/b c.png"), "a/b c.png");
    EXPECT_EQ(
        printable_utf8("\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5"),
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5");
}

TEST(PrintableUtf8, ReplacesInvalidBytesAndControls) {
    EXPECT_EQ(printable_utf8("a\nb\x7f"), "a?b?");
    EXPECT_EQ(printable_utf8("\xff\xc3"), "??");
    EXPECT_EQ(printable_utf8("\xc0\xaf"), "??") << "overlong";
    EXPECT_EQ(printable_utf8("\xed\xa0\x80"), "???") << "surrogate";
    EXPECT_EQ(printable_utf8("\xf4\x90\x80\x80"), "????") << "beyond U+10FFFF";
    EXPECT_EQ(printable_utf8("\xe0\x80\x80"), "???");
    EXPECT_EQ(printable_utf8("\xf0\x80\x80\x80"), "????");
    EXPECT_EQ(printable_utf8("\xe2\x82"), "??") << "cut off";
}

}  // namespace
}  // namespace stoker
