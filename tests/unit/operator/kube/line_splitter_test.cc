#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/kube/watch.h"

namespace stoker::control {
namespace {

std::vector<std::string> split(LineSplitter& splitter, std::string_view piece) {
    std::vector<std::string> lines;
    splitter.push(piece);
    while (const auto line = splitter.next()) {
        lines.emplace_back(*line);
    }
    return lines;
}

TEST(LineSplitter, FindsTheSameLinesForAnyCuts) {
    const std::string stream = "one\n\ntwo and more\nthree\n";
    const std::vector<std::string> want = {"one", "two and more", "three"};
    for (std::size_t first = 0; first <= stream.size(); ++first) {
        for (std::size_t second = first; second <= stream.size(); ++second) {
            LineSplitter splitter;
            std::vector<std::string> got;
            for (const std::string& piece :
                 {stream.substr(0, first),
                  stream.substr(first, second - first),
                  stream.substr(second)}) {
                for (auto& line : split(splitter, piece)) {
                    got.push_back(std::move(line));
                }
            }
            EXPECT_EQ(got, want) << "cut at " << first << " and " << second;
        }
    }
}

TEST(LineSplitter, HoldsBackAnUnfinishedLine) {
    LineSplitter splitter;
    EXPECT_TRUE(split(splitter, "no end").empty());
    EXPECT_EQ(splitter.pending(), 6U);
    EXPECT_EQ(split(splitter, "!\n"), std::vector<std::string>{"no end!"});
    EXPECT_EQ(splitter.pending(), 0U);
}

TEST(LineSplitter, AcceptsALineOfExactlyTheLimit) {
    LineSplitter splitter(4);
    EXPECT_EQ(split(splitter, "1234\n"), std::vector<std::string>{"1234"});
    EXPECT_FALSE(splitter.overflowed());
}

TEST(LineSplitter, RejectsALongerLineWithOrWithoutItsEnd) {
    LineSplitter whole(4);
    EXPECT_TRUE(split(whole, "12345\n").empty());
    EXPECT_TRUE(whole.overflowed());
    LineSplitter unfinished(4);
    EXPECT_TRUE(split(unfinished, "123").empty());
    EXPECT_FALSE(unfinished.overflowed());
    EXPECT_TRUE(split(unfinished, "45").empty());
    EXPECT_TRUE(unfinished.overflowed());
}

}  // namespace
}  // namespace stoker::control
