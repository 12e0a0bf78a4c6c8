#include "operator/kube/object.h"

#include <gtest/gtest.h>

#include "operator/kube/micro_time.h"

namespace stoker::control {
namespace {

Json parse(std::string_view text) {
    auto json = Json::parse(text);
    EXPECT_TRUE(json.has_value()) << text;
    return json ? *json : Json();
}

TEST(ReadObject, ParsesTheHeadAndDropsManagedFields) {
    const auto object = read_object(parse(
        R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"demo","uid":"u1",
            "resourceVersion":"7","managedFields":[{"manager":"kubectl"}]},"spec":{"completions":2}})"));
    ASSERT_TRUE(object);
    EXPECT_EQ(object->api_version, "batch/v1");
    EXPECT_EQ(object->kind, "Job");
    EXPECT_EQ(object->key, (ObjectKey{"demo", "a"}));
    EXPECT_EQ(object->uid, "u1");
    EXPECT_EQ(object->resource_version, "7");
    EXPECT_EQ(object->raw.text().find("managedFields"), std::string::npos);
    EXPECT_NE(object->raw.text().find("completions"), std::string::npos);
}

TEST(ReadObject, RejectsObjectsWithoutAName) {
    for (const char* text :
         {"null", "[]", "3", "{}", R"({"metadata":[]})", R"({"metadata":{"name":5}})"}) {
        EXPECT_EQ(read_object(parse(text)).error().code, ErrorCode::kInvalidArgument) << text;
    }
}

TEST(Json, RejectsGarbageAndDeepNestingWithoutThrowing) {
    EXPECT_FALSE(Json::parse(""));
    EXPECT_FALSE(Json::parse("{\"a\":"));
    EXPECT_FALSE(Json::parse("{} trailing"));
    EXPECT_FALSE(Json::parse(std::string(100'000, '[')));
}

TEST(Json, Keeps64BitIntegersAndRawUnicode) {
    const Json json = parse(R"({"n":9007199254740993,"s":"Größe/λ"})");
    EXPECT_EQ(json.text(), R"({"n":9007199254740993,"s":"Größe/λ"})");
    EXPECT_EQ(integer_at(json.value(), {"n"}), 9007199254740993);
    EXPECT_EQ(integer_at(json.value(), {"s"}), std::nullopt);
    EXPECT_EQ(string_at(json.value(), {"s", "deeper"}), "");
}

TEST(CompareResourceVersions, ComparesNumbersOfAnyLength) {
    EXPECT_EQ(compare_resource_versions("9", "10"), std::strong_ordering::less);
    EXPECT_EQ(compare_resource_versions("10", "010"), std::strong_ordering::equal);
    EXPECT_EQ(
        compare_resource_versions("99999999999999999999999", "99999999999999999999998"),
        std::strong_ordering::greater);
    EXPECT_EQ(compare_resource_versions("0", "00"), std::strong_ordering::equal);
    EXPECT_EQ(compare_resource_versions("", "1"), std::nullopt);
    EXPECT_EQ(compare_resource_versions("1a", "1"), std::nullopt);
}

TEST(FormatMicroTime, AlwaysWritesSixDigits) {
    const WallTime whole{std::chrono::seconds{1'767'225'600}};
    EXPECT_EQ(format_micro_time(whole), "2026-01-01T00:00:00.000000Z");
    EXPECT_EQ(
        format_micro_time(whole + std::chrono::nanoseconds{42'999}), "2026-01-01T00:00:00.000042Z");
}

}  // namespace
}  // namespace stoker::control
