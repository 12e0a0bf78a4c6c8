#include "operator/core/lifecycle/lifecycle_edits.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(LifecycleEdits, DeletesAJobOnceAndByItsUid) {
    const TrainingJobView view = make_running_view();
    Job job = view.jobs[0];
    Lifecycle lifecycle;
    delete_unless_deleting(job, lifecycle);
    EXPECT_EQ(
        lifecycle.actions,
        (std::vector<Action>{DeleteJob{job.meta.name, job.meta.uid, job.meta.resource_version}}));
    job.meta.deleting_since = wall(1);
    delete_unless_deleting(job, lifecycle);
    EXPECT_EQ(lifecycle.actions.size(), 1U);
}

TEST(LifecycleEdits, WakesAtTheEarliestTimeAndAfterADayAtTheLatest) {
    Lifecycle lifecycle;
    wake_at(lifecycle, wall(1'000'000), wall(0));
    EXPECT_EQ(lifecycle.wake_after, hours{24});
    wake_at(lifecycle, wall(50), wall(20));
    EXPECT_EQ(lifecycle.wake_after, seconds{30});
    wake_at(lifecycle, wall(90), wall(20));
    EXPECT_EQ(lifecycle.wake_after, seconds{30});
    wake_at(lifecycle, wall(10), wall(20));
    EXPECT_EQ(lifecycle.wake_after, seconds{0}) << "an overdue time means now";
}

TEST(LifecycleEdits, ActiveTimeRunsBetweenAttemptsAndStopsWhileWaiting) {
    for (const JobState state : {JobState::kStarting, JobState::kRunning, JobState::kRestarting}) {
        Lifecycle lifecycle;
        lifecycle.state = state;
        note({5, wall(10)}, lifecycle.status);
        keep_time(state == JobState::kRunning, wall(30), lifecycle);
        EXPECT_EQ(active_time_of(lifecycle.status), (ActiveTime{5, wall(10)})) << to_string(state);
    }
    for (const JobState state : {JobState::kQueued, JobState::kSuspended, JobState::kComplete}) {
        Lifecycle lifecycle;
        lifecycle.state = state;
        note({5, wall(10)}, lifecycle.status);
        keep_time(true, wall(30), lifecycle);
        EXPECT_EQ(active_time_of(lifecycle.status), (ActiveTime{25, std::nullopt}))
            << to_string(state);
    }
}

TEST(LifecycleEdits, RefusedJobReportsWhyAndIsInvalidIfRetryingCannotHelp) {
    TrainingJobView view = make_view();
    view.diagnosis = {"no such field", true};
    Lifecycle lifecycle;
    lifecycle.state = JobState::kRunning;
    tell_diagnosis(view, lifecycle);
    EXPECT_EQ(lifecycle.state, JobState::kRunning);
    EXPECT_FALSE(lifecycle.blocked);
    lifecycle.state = JobState::kStarting;
    tell_diagnosis(view, lifecycle);
    EXPECT_EQ(lifecycle.state, JobState::kInvalid);
    EXPECT_EQ(lifecycle.message, "no such field");
    EXPECT_TRUE(lifecycle.blocked);
}

}  // namespace
}  // namespace stoker::control
