#include "common/domain/http_index.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "key|size|version" of each entry, from an index that arrives in pieces of `step` bytes.
Result<std::vector<std::string>> read(std::string_view text, std::size_t step = 1) {
    HttpIndexReader reader{"index.txt"};
    std::vector<std::string> entries;
    const HttpIndexReader::Take take = [&entries](const HttpIndexEntry& entry) -> Status {
        const std::string size = entry.size_bytes ? std::to_string(*entry.size_bytes) : "?";
        entries.push_back(std::string{entry.key} + "|" + size + "|" + entry.version);
        return {};
    };
    for (std::size_t at = 0; at < text.size(); at += step) {
        STOKER_TRY_VOID(reader.read(text.substr(at, step), take));
    }
    STOKER_TRY_VOID(reader.finish(take));
    return entries;
}

TEST(HttpIndex, ReadsOneToThreeColumns) {
    const std::string text =
        "cat/1.jpg\n"
        "12\tdog/a b%?#.jpg\n"
        "0\tempty\t1700000000.1234567890\n"
        "7\ttagged\t\"5f-a\"\n"
        "18446744073709551615\tlast\tW/\"x\"";
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, text.size()}) {
        const auto entries = read(text, step);
        ASSERT_TRUE(entries.has_value()) << entries.error().message;
        EXPECT_THAT(
            *entries,
            ElementsAre(
                "cat/1.jpg|?|",
                "dog/a b%?#.jpg|12|",
                "empty|0|@1700000000",
                "tagged|7|\"5f-a\"",
                "last|18446744073709551615|W/\"x\""));
    }
}

TEST(HttpIndex, LeavesItselfOut) {
    const auto entries = read("0\tindex.txt\n1\ta/index.txt\n");
    ASSERT_TRUE(entries.has_value());
    EXPECT_THAT(*entries, ElementsAre("a/index.txt|1|"));
    const auto endless = read("index.txt\na\nindex.txt\n");
    ASSERT_FALSE(endless.has_value());
    EXPECT_EQ(endless.error().message, "index.txt, line 3: names the index itself more than once");
}

TEST(HttpIndex, RefusesHostileLinesWithTheirNumber) {
    for (const std::string line :
         {"",
          "/etc/passwd",
          "../secret",
          "a/../b",
          "a/..",
          "./a",
          "a//b",
          "a/",
          "https://other/a",
          "//other/a",
          "a\r",
          "a\x7F",
          "x\ta",
          "-1\ta",
          "1.5\ta",
          "18446744073709551616\ta",
          " 1\ta",
          "1\t",
          "1\ta\t",
          "1\ta\tb",
          "1\ta\t\"b",
          "1\ta\t\"b\"c\"",
          "1\ta\t-5",
          "1\ta\t5.",
          "1\ta\t1700000000000",
          "1\ta\t9000000001",
          "1\ta\t5\t6"}) {
        const auto entries = read("1\tgood\n" + line + "\n1\tgood\n");
        ASSERT_FALSE(entries.has_value()) << line;
        EXPECT_EQ(entries.error().code, ErrorCode::kInvalidArgument);
        EXPECT_THAT(entries.error().message, HasSubstr("index.txt, line 2: ")) << line;
    }
    EXPECT_FALSE(read(std::string{"a\0b\n", 4}).has_value());
}

TEST(HttpIndex, RefusesALineWithoutEndAndAnEmptyIndex) {
    const auto endless = read(std::string(70'000, 'a'), 1000);
    ASSERT_FALSE(endless.has_value());
    EXPECT_THAT(endless.error().message, HasSubstr("line 1: longer than 65536 bytes"));
    const std::string long_line = std::string(70'000, 'a') + "\n";
    for (const std::size_t step : {std::size_t{1000}, long_line.size()}) {
        const auto refused = read(long_line, step);
        ASSERT_FALSE(refused.has_value()) << step;
        EXPECT_THAT(refused.error().message, HasSubstr("line 1: longer than 65536 bytes"));
    }
    ASSERT_FALSE(read("").has_value());
    EXPECT_EQ(read("").error().message, "index.txt is empty");
}

}  // namespace
}  // namespace stoker::domain
