#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/origin/s3_request.h"
#include "sidecar/origin/s3_xml.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

TEST(Percent, EncodesEverythingButUnreserved) {
    EXPECT_EQ(percent_encode("AZaz09-._~", false), "AZaz09-._~");
    EXPECT_EQ(percent_encode("a b+c%d?e#f&g=h", false), "a%20b%2Bc%25d%3Fe%23f%26g%3Dh");
    EXPECT_EQ(percent_encode("a/b", false), "a%2Fb");
    EXPECT_EQ(percent_encode("a/../b//c", true), "a/../b//c");
    EXPECT_EQ(percent_encode("h\u00e9\u2603\U0001F525", false), "h%C3%A9%E2%98%83%F0%9F%94%A5");
    EXPECT_EQ(percent_encode(std::string_view{"\0\xff\n", 3}, false), "%00%FF%0A");
}

TEST(Percent, DecodesBothSpellingsOfASpace) {
    EXPECT_EQ(percent_decode("a%20b+c%2Bd", true), "a b c+d");
    EXPECT_EQ(percent_decode("a%20b+c%2bd", false), "a b+c+d");
}

TEST(Percent, RefusesBrokenEscapes) {
    for (const char* text : {"%", "%4", "a%4", "%zz", "%4g", "%%41"}) {
        EXPECT_EQ(percent_decode(text, false), std::nullopt) << text;
    }
    EXPECT_EQ(percent_decode("%41", false), "A") << "at the very end";
}

TEST(Percent, DecodingUndoesEncoding) {
    Prng random{test::seed()};
    for (int round = 0; round < 1000; ++round) {
        std::string text(random.below(40), '\0');
        for (char& c : text) {
            c = static_cast<char>(random());
        }
        EXPECT_EQ(percent_decode(percent_encode(text, true), false), text);
        EXPECT_EQ(percent_decode(percent_encode(text, false), true), text);
    }
}

}  // namespace
}  // namespace stoker::sidecar
