#include "operator/kube/list_page.h"

#include <string>
#include <vector>

#include <cpprest/json.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Read {
    Result<ListPage> page;
    std::vector<std::string> items;
};

Read read(const std::string& text) {
    Read result{ListPage{}, {}};
    result.page =
        read_list(text, [&](web::json::value&& item) { result.items.push_back(item.serialize()); });
    return result;
}

TEST(ReadList, VisitsEachItemInOrder) {
    const Read list = read(R"( {"kind":"PodList","items" : [ {"a":1}, {"b":{"c":[{"d":2}]}} ],
        "metadata":{"resourceVersion":"7","continue":"next"}} )");
    ASSERT_TRUE(list.page) << list.page.error().message;
    EXPECT_EQ(list.page->resource_version, "7");
    EXPECT_EQ(list.page->continue_token, "next");
    EXPECT_THAT(list.items, ElementsAre(R"({"a":1})", R"({"b":{"c":[{"d":2}]}})"));
}

TEST(ReadList, IgnoresBracketsInTextsAndNestedNames) {
    const Read list = read(R"({"metadata":{"resourceVersion":"7","items":[{"x":1}]},
        "items":[{"items":[{"y":1}],"metadata":{"resourceVersion":"8"},"t":"}]\"{"}]})");
    ASSERT_TRUE(list.page);
    EXPECT_EQ(list.page->resource_version, "7");
    ASSERT_EQ(list.items.size(), 1U);
    EXPECT_THAT(list.items[0], HasSubstr(R"("t":"}]\"{")"));
}

TEST(ReadList, KeepsNumbersAndEscapes) {
    const Read list = read(R"({"metadata":{"resourceVersion":"7"},
        "items":[{"n":9223372036854775807,"f":0.1,"u":"\u00e9"}]})");
    EXPECT_THAT(
        list.items, ElementsAre(R"({"f":0.10000000000000001,"n":9223372036854775807,"u":"é"})"));
}

TEST(ReadList, PassesNullForAnItemThatIsNotAnObject) {
    const Read list = read(R"({"metadata":{"resourceVersion":"7"},"items":[1,{"a":1},null,"x"]})");
    EXPECT_TRUE(list.page);
    EXPECT_THAT(list.items, ElementsAre("null", R"({"a":1})", "null", "null"));
}

TEST(ReadList, AcceptsNullItems) {
    const Read list = read(R"({"metadata":{"resourceVersion":"7"},"items":null})");
    EXPECT_TRUE(list.page);
    EXPECT_THAT(list.items, IsEmpty());
}

TEST(ReadList, RejectsTextsThatAreNotLists) {
    for (const char* text :
         {"",
          "[]",
          "null",
          R"({"items":[]})",
          R"({"metadata":{"resourceVersion":"7"}})",
          R"({"metadata":{"resourceVersion":"7"},"items":{}})",
          R"({"metadata":{"resourceVersion":"7"},"items":[{"a":1})",
          R"({"metadata":{"resourceVersion":"7"},"items":[]} x)"}) {
        EXPECT_EQ(read(text).page.error().code, ErrorCode::kInvalidArgument) << text;
    }
}

TEST(ReadList, SurvivesDeepNesting) {
    const std::string deep = R"({"metadata":{"resourceVersion":"7"},"items":[{"a":)" +
                             std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}]}";
    EXPECT_THAT(read(deep).items, ElementsAre("null"));
}

}  // namespace
}  // namespace stoker::control
