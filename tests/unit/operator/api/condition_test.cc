#include "operator/api/condition.h"

#include <chrono>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

WallTime at(int second) {
    return WallTime{std::chrono::seconds{second}};
}

TEST(SetCondition, KeepsTheConditionsSortedByType) {
    std::vector<Condition> conditions;
    set_condition(conditions, {"Running", ConditionStatus::kTrue, 1, at(1), "A", ""});
    set_condition(conditions, {"Complete", ConditionStatus::kFalse, 1, at(1), "A", ""});
    set_condition(conditions, {"Failed", ConditionStatus::kFalse, 1, at(1), "A", ""});
    ASSERT_EQ(conditions.size(), 3U);
    EXPECT_EQ(conditions[0].type, "Complete");
    EXPECT_EQ(conditions[1].type, "Failed");
    EXPECT_EQ(conditions[2].type, "Running");
}

TEST(SetCondition, KeepsTheTimeUntilTheStatusChanges) {
    std::vector<Condition> conditions;
    set_condition(conditions, {"Running", ConditionStatus::kFalse, 1, at(1), "Starting", "a"});
    set_condition(conditions, {"Running", ConditionStatus::kFalse, 2, at(5), "Restarting", "b"});
    EXPECT_EQ(
        conditions[0],
        (Condition{"Running", ConditionStatus::kFalse, 2, at(1), "Restarting", "b"}));
    set_condition(conditions, {"Running", ConditionStatus::kTrue, 2, at(9), "Running", ""});
    EXPECT_EQ(conditions[0].last_transition, at(9));
}

TEST(IsTrue, IsFalseForUnknownAndForAbsentConditions) {
    std::vector<Condition> conditions;
    EXPECT_FALSE(is_true(conditions, "Ready"));
    set_condition(conditions, {"Ready", ConditionStatus::kUnknown, 1, at(1), "Silent", ""});
    EXPECT_FALSE(is_true(conditions, "Ready"));
    set_condition(conditions, {"Ready", ConditionStatus::kTrue, 1, at(1), "Listed", ""});
    EXPECT_TRUE(is_true(conditions, "Ready"));
}

}  // namespace
}  // namespace stoker::control
