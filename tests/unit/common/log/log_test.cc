#include "common/log/log.h"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

namespace stoker::log {
namespace {

TEST(Log, WritesOneJsonObjectPerLine) {
    EXPECT_EQ(
        format_line(
            "T",
            Level::kWarning,
            "grant shrunk",
            {{"dataset", "ml/mnist"}, {"bytes", 17}, {"share", 0.5}, {"borrowed", true}}),
        "{\"ts\":\"T\",\"level\":\"warning\",\"msg\":\"grant shrunk\",\"dataset\":\"ml/mnist\","
        "\"bytes\":17,\"share\":0.5,\"borrowed\":true}\n");
}

TEST(Log, EscapesForJson) {
    EXPECT_EQ(
        format_line("T", Level::kInfo, "m", {{"key", "a\"b\\c\nd\te\x01 é"}}),
        "{\"ts\":\"T\",\"level\":\"info\",\"msg\":\"m\",\"key\":"
        "\"a\\\"b\\\\c\\nd\\u0009e\\u0001 é\"}\n");
    EXPECT_EQ(
        format_line("T", Level::kInfo, "m", {{"key", "a\xff\xc3(\xed\xa0\x80"}}),
        "{\"ts\":\"T\",\"level\":\"info\",\"msg\":\"m\",\"key\":"
        "\"a\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\"}\n")
        << "not UTF-8";
}

TEST(Log, ParsesEveryLevelAndNothingElse) {
    Level level = Level::kError;
    for (const auto& [text, want] : std::array<std::pair<const char*, Level>, 4>{
             {{"debug", Level::kDebug},
              {"info", Level::kInfo},
              {"warning", Level::kWarning},
              {"error", Level::kError}}}) {
        EXPECT_TRUE(parse_level(text, level));
        EXPECT_EQ(level, want);
    }
    EXPECT_FALSE(parse_level("INFO", level));
    EXPECT_FALSE(parse_level("", level));
    EXPECT_EQ(level, Level::kError) << "left alone";
}

TEST(Log, WritesNothingBelowTheLevel) {
    testing::internal::CaptureStderr();
    set_level(Level::kWarning);
    info("quiet");
    warning("loud", {{"n", 1}});
    set_level(Level::kInfo);
    const std::string output = testing::internal::GetCapturedStderr();
    EXPECT_EQ(output.find("quiet"), std::string::npos);
    EXPECT_NE(output.find("\"msg\":\"loud\",\"n\":1}\n"), std::string::npos);
    EXPECT_EQ(output.find("{\"ts\":\"20"), 0U) << output;
}

}  // namespace
}  // namespace stoker::log
