#include "common/flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FlagsTest : public testing::Test {
protected:
    std::string complaint(const std::vector<std::string_view>& arguments) {
        const Status status = parse_flags(groups_, arguments);
        return status ? "" : status.error().message;
    }

    std::string last_;
    bool set_ = false;
    std::vector<FlagGroup> groups_ = {
        {"Group",
         {{"value",
           "V",
           "a value",
           [this](std::string_view text) -> Status {
               last_ = text;
               return {};
           },
           'v'},
          {"switch",
           "",
           "a switch",
           [this](std::string_view) -> Status {
               set_ = true;
               return {};
           },
           's'}}}};
};

TEST_F(FlagsTest, ValuesFollowASpaceOrEqualsSign) {
    EXPECT_EQ(complaint({"--value", "a", "--switch"}), "");
    EXPECT_EQ(last_, "a");
    EXPECT_TRUE(set_);
    EXPECT_EQ(complaint({"--value=b=c"}), "");
    EXPECT_EQ(last_, "b=c");
}

TEST_F(FlagsTest, ErrorsNameValidFlags) {
    EXPECT_THAT(complaint({"--valeu", "1"}), HasSubstr("did you mean --value?"));
    EXPECT_THAT(complaint({"--zzzzzzz"}), HasSubstr("there are: --value --switch"));
    EXPECT_THAT(complaint({"--value"}), HasSubstr("--value needs a value"));
    EXPECT_THAT(complaint({"value"}), HasSubstr("flags begin with --"));
}

TEST_F(FlagsTest, WordsAndFlagsMixInAnyOrder) {
    EXPECT_THAT(
        *parse_words(groups_, {"why", "-v", "a", "tj/x", "-s"}), ElementsAre("why", "tj/x"));
    EXPECT_EQ(last_, "a");
    EXPECT_TRUE(set_);
    EXPECT_THAT(*parse_words(groups_, {"-vb", "--value=c", "-v=d", "--", "-e"}), ElementsAre("-e"));
    EXPECT_EQ(last_, "d");
    EXPECT_THAT(*parse_words(groups_, {"-"}), ElementsAre("-"));
    EXPECT_EQ(parse_words(groups_, {"-x"}).error().message, "unknown flag -x");
    EXPECT_THAT(parse_words(groups_, {"-v"}).error().message, HasSubstr("-v needs a value"));
}

TEST_F(FlagsTest, HelpNamesEveryFlag) {
    EXPECT_THAT(flag_help(groups_), HasSubstr("  -v, --value V               a value\n"));
    EXPECT_THAT(flag_help(groups_), HasSubstr("--switch"));
}

TEST(Flags, NumbersMustFillTheWholeText) {
    EXPECT_EQ(*parse_number("x", "-0.5e1"), -5);
    EXPECT_FALSE(parse_number("x", "1k").has_value());
    EXPECT_FALSE(parse_number("x", "nan").has_value());
    EXPECT_FALSE(parse_number("x", "").has_value());
    EXPECT_FALSE(parse_count("x", "-1").has_value());
    EXPECT_FALSE(parse_count("x", "1.5").has_value());
}

TEST(Flags, PairsStopAtTheFirstMistake) {
    std::string seen;
    const auto take = [&seen](std::string_view name, std::string_view value) -> Status {
        seen += std::string{name} + ":" + std::string{value} + " ";
        return name == "bad" ? Status{fail(ErrorCode::kInvalidArgument, "no")} : Status{};
    };
    EXPECT_TRUE(each_pair("a=1,b=2=3,c=", "a=1", take));
    EXPECT_EQ(seen, "a:1 b:2=3 c: ");
    EXPECT_EQ(each_pair("bad=1,a=1", "a=1", take).error().message, "no");
    EXPECT_EQ(seen, "a:1 b:2=3 c: bad:1 ");
    EXPECT_EQ(each_pair("x", "a=1", take).error().message, "'x' is not name=value, such as a=1");
}

}  // namespace
}  // namespace stoker
