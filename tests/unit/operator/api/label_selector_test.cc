#include "operator/api/label_selector.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

TEST(LabelSelector, EmptySelectorSelectsEverything) {
    EXPECT_TRUE(selects({}, {}));
    EXPECT_TRUE(selects({}, {{"a", "1"}}));
}

TEST(LabelSelector, RequiresEveryLabel) {
    const LabelSelector selector{{{"a", "1"}, {"b", ""}}, {}};
    EXPECT_TRUE(selects(selector, {{"a", "1"}, {"b", ""}, {"c", "3"}}));
    EXPECT_FALSE(selects(selector, {{"a", "1"}}));
    EXPECT_FALSE(selects(selector, {{"a", "2"}, {"b", ""}}));
}

TEST(LabelSelector, OperatorsMatchKubernetes) {
    struct Case {
        LabelOperator op;
        std::vector<std::string> values;
        bool listed;   // {"a": "1"}
        bool other;    // {"a": "9"}
        bool missing;  // {}
    };

    const Case cases[] = {
        {LabelOperator::kIn, {"1", "2"}, true, false, false},
        {LabelOperator::kNotIn, {"1", "2"}, false, true, true},
        {LabelOperator::kExists, {}, true, true, false},
        {LabelOperator::kDoesNotExist, {}, false, false, true},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(choice_text(c.op));
        const LabelSelector selector{{}, {{"a", c.op, c.values}}};
        EXPECT_EQ(selects(selector, {{"a", "1"}}), c.listed);
        EXPECT_EQ(selects(selector, {{"a", "9"}}), c.other);
        EXPECT_EQ(selects(selector, {}), c.missing);
    }
}

TEST(LabelSelector, AllRequirementsMustHold) {
    const LabelSelector selector{
        {{"a", "1"}}, {{"b", LabelOperator::kExists, {}}, {"c", LabelOperator::kDoesNotExist, {}}}};
    EXPECT_TRUE(selects(selector, {{"a", "1"}, {"b", "2"}}));
    EXPECT_FALSE(selects(selector, {{"b", "2"}}));
    EXPECT_FALSE(selects(selector, {{"a", "1"}}));
    EXPECT_FALSE(selects(selector, {{"a", "1"}, {"b", "2"}, {"c", "3"}}));
}

}  // namespace
}  // namespace stoker::control
