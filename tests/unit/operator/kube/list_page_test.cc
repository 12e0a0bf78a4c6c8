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

constexpr const char* kList =
    R"({"kind":"PodList","extra":[1,{"items":[2]}],"items":[{"a":"\\\"]}"},7,{"b":[[1],{"c":"\u00e9{"}]}],)"
    R"( "metadata":{"resourceVersion":"7","continue":"x/y"} } )";

TEST(ListReader, ReadsTheSameFromPiecesOfAnySize) {
    const std::string text = kList;
    const Read whole = read(text);
    ASSERT_TRUE(whole.page);
    ASSERT_EQ(whole.items.size(), 3U);
    for (std::size_t size = 1; size < text.size(); ++size) {
        std::vector<std::string> items;
        ListReader reader([&](web::json::value&& item) { items.push_back(item.serialize()); });
        for (std::size_t at = 0; at < text.size(); at += size) {
            ASSERT_TRUE(reader.push(std::string_view(text).substr(at, size)));
        }
        const auto page = reader.finish();
        ASSERT_TRUE(page) << size;
        EXPECT_EQ(page->continue_token, "x/y");
        EXPECT_EQ(items, whole.items) << size;
    }
}

TEST(ListReader, VisitsAnItemAsSoonAsItIsComplete) {
    std::vector<std::string> items;
    ListReader reader([&](web::json::value&& item) { items.push_back(item.serialize()); });
    EXPECT_TRUE(reader.push(R"({"items":[{"a":1},{"b")"));
    EXPECT_THAT(items, ElementsAre(R"({"a":1})"));
}

TEST(ListReader, RefusesEveryCutList) {
    const std::string text = R"({"items":[{"a":1}],"metadata":{"resourceVersion":"7"}})";
    for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_FALSE(read(text.substr(0, size)).page) << size;
    }
}

TEST(ListReader, RefusesInvalidJsonAndSaysAtWhichByte) {
    for (const char* text :
         {R"({"items":[{"a":1}}],"metadata":{"resourceVersion":"7"}})",
          R"({"items":[{"a":]}],"metadata":{"resourceVersion":"7"}})",
          R"({"items":[{"a":1},],"metadata":{"resourceVersion":"7"}})",
          R"({"items":[{"a":1} {"a":2}],"metadata":{"resourceVersion":"7"}})",
          R"({"items":[nonsense],"metadata":{"resourceVersion":"7"}})",
          R"({"items":[],,"metadata":{"resourceVersion":"7"}})",
          R"({"items":[],"metadata" {"resourceVersion":"7"}})",
          R"({items:[],"metadata":{"resourceVersion":"7"}})"}) {
        const Read list = read(text);
        ASSERT_FALSE(list.page) << text;
        EXPECT_THAT(list.page.error().message, HasSubstr("at byte")) << text;
    }
}

TEST(ListReader, RefusesAnItemBeyondTheLimit) {
    ListReader reader([](web::json::value&&) {}, 100);
    const Status pushed = reader.push(R"({"items":[{"a":")" + std::string(200, 'x'));
    EXPECT_EQ(pushed.error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(reader.finish().error().code, ErrorCode::kResourceExhausted);
}

TEST(ReadList, SurvivesDeepNesting) {
    const std::string deep = R"({"metadata":{"resourceVersion":"7"},"items":[{"a":)" +
                             std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}]}";
    EXPECT_THAT(read(deep).items, ElementsAre("null"));
}

}  // namespace
}  // namespace stoker::control
