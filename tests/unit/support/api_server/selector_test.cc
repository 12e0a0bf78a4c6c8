#include "tests/support/api_server/selector.h"

#include <cpprest/json.h>
#include <gtest/gtest.h>

#include "tests/support/api_server/json_patch.h"

namespace stoker::test {
namespace {

web::json::value parse(const char* text) {
    return web::json::value::parse(text);
}

TEST(Selector, UnderstandsTheUsualTerms) {
    const auto object = parse(
        R"({"metadata":{"name":"a","namespace":"demo","labels":{"app":"x","tier":"db"}},
            "spec":{"nodeName":"n1","replicas":2}})");

    struct Case {
        Selector selector;
        bool want;
    };

    const Case cases[] = {
        {{"", "", ""}, true},
        {{"demo", "", ""}, true},
        {{"other", "", ""}, false},
        {{"", "app=x", ""}, true},
        {{"", "app==x,tier=db", ""}, true},
        {{"", "app=x,tier=web", ""}, false},
        {{"", "app!=y", ""}, true},
        {{"", "none!=y", ""}, true},
        {{"", "app", ""}, true},
        {{"", "!app", ""}, false},
        {{"", "none", ""}, false},
        {{"", "!none", ""}, true},
        {{"", "app in (w, x),tier", ""}, true},
        {{"", "app in (w)", ""}, false},
        {{"", "app notin (w,x)", ""}, false},
        {{"", "none notin (w)", ""}, true},
        {{"", "", "metadata.name=a"}, true},
        {{"", "", "metadata.name!=a"}, false},
        {{"", "", "spec.nodeName=n1,spec.replicas=2"}, true},
        {{"", "", "status.phase="}, true},
        {{"", "", "status.phase!=Running"}, true},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(matches(c.selector, object), c.want)
            << c.selector.ns << "|" << c.selector.labels << "|" << c.selector.fields;
    }
}

TEST(MergePatch, FollowsTheExamplesOfRfc7396) {
    const char* cases[][3] = {
        {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
        {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
        {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
        {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
        {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
        {R"({"a":"foo"})", R"("bar")", R"("bar")"},
        {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
        {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
    };
    for (const auto& [before, patch, after] : cases) {
        auto document = parse(before);
        merge_patch(document, parse(patch));
        EXPECT_EQ(document, parse(after)) << before << " + " << patch;
    }
}

TEST(JsonPatch, TestsAddsReplacesAndRemoves) {
    auto document = parse(R"({"list":["a","c"],"o":{"x/y":1}})");
    ASSERT_TRUE(json_patch(document, parse(R"([{"op":"test","path":"/list/1","value":"c"},
                  {"op":"add","path":"/list/1","value":"b"},
                  {"op":"add","path":"/list/-","value":"d"},
                  {"op":"replace","path":"/o/x~1y","value":2},
                  {"op":"remove","path":"/list/0"}])")));
    EXPECT_EQ(document, parse(R"({"list":["b","c","d"],"o":{"x/y":2}})"));
    for (const char* wrong :
         {R"([{"op":"test","path":"/list/0","value":"z"}])",
          R"([{"op":"remove","path":"/none"}])",
          R"([{"op":"replace","path":"/list/9","value":1}])",
          R"([{"op":"add","path":"/none/deep","value":1}])",
          R"([{"op":"move","path":"/list/0"}])",
          R"({})"}) {
        auto copy = document;
        EXPECT_FALSE(json_patch(copy, parse(wrong))) << wrong;
    }
}

}  // namespace
}  // namespace stoker::test
