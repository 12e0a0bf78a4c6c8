#include "operator/api/time_format.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

WallTime at(std::int64_t unix_seconds) {
    return WallTime{seconds{unix_seconds}};
}

TEST(ParseTime, ReadsSecondsAndFractions) {
    EXPECT_EQ(*parse_time("1970-01-01T00:00:00Z"), at(0));
    EXPECT_EQ(*parse_time("2026-01-31T12:34:56Z"), at(1769862896));
    EXPECT_EQ(*parse_time("2024-02-29T00:00:00Z"), at(1709164800));
    EXPECT_EQ(*parse_time("1970-01-01T00:00:01.5Z"), at(1) + milliseconds{500});
    EXPECT_EQ(*parse_time("1970-01-01T00:00:00.000001Z"), at(0) + std::chrono::microseconds{1});
}

TEST(ParseTime, RejectsOtherFormats) {
    const std::vector<std::string> wrong = {
        "",
        "Z",
        "2026-01-31",
        "2026-01-31T12:34:56",
        "2026-01-31 12:34:56Z",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:34:56+01:00",
        "2026-01-31T12:34:56.Z",
        "2026-01-31T12:34:56.1234567890Z",
        "2026-01-31T12:34:5xZ"};
    for (const std::string& text : wrong) {
        EXPECT_FALSE(parse_time(text)) << text;
    }
}

TEST(ParseTime, ClampsTimesToTheRangeOfDurations) {
    EXPECT_EQ(format_time(*parse_time("9999-12-31T23:59:59Z")), "2200-01-01T00:00:00Z");
    EXPECT_EQ(format_time(*parse_time("2199-12-31T23:59:59Z")), "2199-12-31T23:59:59Z");
    EXPECT_EQ(*parse_time("0001-01-01T00:00:00Z"), at(0));
}

TEST(FormatTime, CutsFractions) {
    EXPECT_EQ(format_time(at(1769862896) + milliseconds{999}), "2026-01-31T12:34:56Z");
}

TEST(FormatTime, IsInvertedByParseTime) {
    for (std::int64_t second = 0; second < 4'000'000'000; second += 86'399'999) {
        EXPECT_EQ(*parse_time(format_time(at(second))), at(second));
    }
}

}  // namespace
}  // namespace stoker::control
