#include "operator/core/active_time.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(ActiveTime, BeginsWithTheJobAndStopsWhereItIsSuspended) {
    TrainingJobStatus status;
    Job job;
    job.start_time = wall(100);
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), (ActiveTime{0, wall(100)}));
    status.active_since = wall(100);
    job.suspend = true;
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), (ActiveTime{50, std::nullopt}));
    job.suspended_since = wall(120);
    EXPECT_EQ(observe_active_time(status, &job, wall(150)), (ActiveTime{20, std::nullopt}));
    EXPECT_EQ(observe_active_time(status, nullptr, wall(150)), (ActiveTime{0, wall(100)}));
}

TEST(ActiveTime, DoesNotBeginWithAJobThatWasBornSuspended) {
    Job job;
    job.suspend = true;
    EXPECT_EQ(observe_active_time({}, &job, wall(150)), ActiveTime{});
}

TEST(ActiveTime, AClockThatGoesBackTakesNothingAway) {
    EXPECT_EQ(stop({7, wall(100)}, wall(50)), (ActiveTime{7, std::nullopt}));
}

TEST(ActiveTime, ADeadlineIsForTheTimeThatIsLeft) {
    EXPECT_EQ(deadline_of({30, wall(1000)}, 100), wall(1070));
    EXPECT_EQ(deadline_of({30, std::nullopt}, 100), std::nullopt);
    EXPECT_EQ(deadline_of({30, wall(1000)}, std::nullopt), std::nullopt);
    EXPECT_EQ(deadline_of({30, wall(1000)}, INT64_MAX), WallTime::max());
}

}  // namespace
}  // namespace stoker::control
