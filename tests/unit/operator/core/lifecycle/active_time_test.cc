#include "operator/core/lifecycle/active_time.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(ActiveTime, StartsWithTheJobOrTheEndOfASuspension) {
    TrainingJobStatus status;
    Job job;
    job.start_time = wall(100);
    EXPECT_EQ(observe_active_time(status, nullptr, wall(150)), ActiveTime{});
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), (ActiveTime{0, wall(100)}));
    Condition& suspended = status.conditions.emplace_back();
    suspended.type = "Suspended";
    suspended.status = ConditionStatus::kTrue;
    suspended.last_transition = wall(120);
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), ActiveTime{});
    suspended.status = ConditionStatus::kFalse;
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), (ActiveTime{0, wall(120)}));
    job.start_time = wall(130);
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), (ActiveTime{0, wall(130)}));
}

TEST(ActiveTime, DoesNotStartWithAJobCreatedSuspended) {
    Job job;
    job.suspend = true;
    EXPECT_EQ(observe_active_time({}, &job, wall(150)), ActiveTime{});
}

TEST(ActiveTime, IgnoresAClockThatJumpsBack) {
    EXPECT_EQ(stop({7, wall(100)}, wall(50)), (ActiveTime{7, std::nullopt}));
}

TEST(ActiveTime, DeadlineCountsTheRemainingTime) {
    EXPECT_EQ(deadline_of({30, wall(1000)}, 100), wall(1070));
    EXPECT_EQ(deadline_of({30, std::nullopt}, 100), std::nullopt);
    EXPECT_EQ(deadline_of({30, wall(1000)}, std::nullopt), std::nullopt);
    EXPECT_EQ(deadline_of({30, wall(1000)}, INT64_MAX), WallTime::max());
}

}  // namespace
}  // namespace stoker::control
