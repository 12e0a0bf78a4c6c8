#include "common/base/quantity.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ParseBytes, ParsesEveryKubernetesSuffix) {
    struct Case {
        std::string text;
        std::uint64_t want;
    };

    const std::vector<Case> cases = {
        {"0", 0},
        {"17", 17},
        {"+17", 17},
        {"1Ki", 1024},
        {"1.5Gi", 1610612736},
        {"310Gi", 310ULL << 30U},
        {"2Ti", 2ULL << 40U},
        {"1Pi", 1ULL << 50U},
        {"7Ei", 7ULL << 60U},
        {"1k", 1000},
        {"1M", 1'000'000},
        {"2e9", 2'000'000'000},
        {"2E9", 2'000'000'000},
        {"2e+3", 2000},
        {"1E", 1'000'000'000'000'000'000},
        {".5Ki", 512},
        {"5.", 5},
        {"9223372036854775807", 9223372036854775807ULL},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.text);
        const Result<Bytes> bytes = parse_bytes(c.text);
        ASSERT_TRUE(bytes) << bytes.error().message;
        EXPECT_EQ(bytes->count(), c.want);
    }
}

TEST(ParseBytes, RoundsFractionsUp) {
    EXPECT_EQ(parse_bytes("100m")->count(), 1U);
    EXPECT_EQ(parse_bytes("1001m")->count(), 2U);
    EXPECT_EQ(parse_bytes("0.1Ki")->count(), 103U);
    EXPECT_EQ(parse_bytes("1n")->count(), 1U);
}

TEST(ParseBytes, RejectsInvalidQuantityAndQuotesIt) {
    const std::vector<std::string> wrong = {"",     ".",   "Gi",   "lots",
                                            "1 Gi", "1gi", "1KiB", "1.2.3",
                                            "0x10", "1e",  "1e+",  "1e100",
                                            "1ei",  "-1",  "-1Gi", "9223372036854775808",
                                            "8Ei",  "10E", "1e19", "99999999999999999999999999"};
    for (const std::string& text : wrong) {
        SCOPED_TRACE(text);
        const Result<Bytes> bytes = parse_bytes(text);
        ASSERT_FALSE(bytes);
        EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
        EXPECT_NE(bytes.error().message.find("'" + text + "'"), std::string::npos);
    }
}

TEST(ParseWhole, RoundsDownToWholeUnits) {
    EXPECT_EQ(*parse_whole("8"), 8);
    EXPECT_EQ(*parse_whole("3500m"), 3);
    EXPECT_EQ(*parse_whole("0.9"), 0);
    EXPECT_EQ(*parse_whole("2k"), 2000);
    EXPECT_FALSE(parse_whole("many"));
}

}  // namespace
}  // namespace stoker
