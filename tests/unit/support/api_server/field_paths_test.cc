#include "tests/support/api_server/field_paths.h"

#include <cpprest/json.h>
#include <gtest/gtest.h>

namespace stoker::test {
namespace {

web::json::value parse(const char* text) {
    return web::json::value::parse(text);
}

TEST(FieldPaths, NameItemsOfKeyedListsAndTreatOthersAsAtomic) {
    std::set<std::string> texts;
    const auto document = parse(
        R"({"spec":{"containers":[{"name":"a","args":["x","y"]}],"empty":{}},
            "metadata":{"finalizers":["f1"]},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
    for (const FieldPath& path : leaf_paths(document)) {
        texts.insert(to_text(path));
    }
    EXPECT_EQ(
        texts,
        (std::set<std::string>{
            ".metadata.finalizers[=f1]",
            ".spec.containers[name=a].args",
            ".spec.containers[name=a].name",
            ".spec.empty",
            ".status.conditions[type=Ready].status",
            ".status.conditions[type=Ready].type"}));
}

TEST(FieldPaths, MergingSetsEveryLeafAndKeepsTheRest) {
    auto document = parse(
        R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}],"list":[1,2]}})");
    const auto patch = parse(
        R"({"spec":{"containers":[{"name":"b","image":"3"},{"name":"c","image":"4"}],"list":[9]}})");
    merge_fields(document, patch);
    EXPECT_EQ(
        document,
        parse(
            R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"3"},{"name":"c","image":"4"}],"list":[9]}})"));
    for (const FieldPath& path : leaf_paths(patch)) {
        ASSERT_NE(value_at(document, path), nullptr) << to_text(path);
        EXPECT_EQ(*value_at(document, path), *value_at(patch, path)) << to_text(path);
    }
}

TEST(FieldPaths, EraseOnlyNamedFields) {
    auto document = parse(
        R"({"c":{"conditions":[{"type":"A","status":"1"},{"type":"B","status":"2"}]},"x":1})");
    erase_at(document, {"c", "conditions", "[type=A]", "status"});
    erase_at(document, {"x"});
    erase_at(document, {"not", "there"});
    EXPECT_EQ(document, parse(R"({"c":{"conditions":[{"type":"A"},{"type":"B","status":"2"}]}})"));
}

TEST(FieldPaths, FindChangedFields) {
    const auto before = parse(R"({"a":1,"b":{"c":2},"gone":3})");
    const auto after = parse(R"({"a":1,"b":{"c":3,"d":4}})");
    EXPECT_EQ(changed_paths(before, after), (FieldSet{{"b", "c"}, {"b", "d"}}));
}

}  // namespace
}  // namespace stoker::test
