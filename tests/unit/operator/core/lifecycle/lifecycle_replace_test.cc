// Jobs that somebody has changed, and Jobs of another number of ranks than the spec's.

#include <gtest/gtest.h>

#include "operator/core/lifecycle/lifecycle.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using Actions = std::vector<Action>;

TEST(LifecycleReplace, ReplacesAJobSuspendedByAnotherClientAfterADelay) {
    TrainingJobView view = make_running_view();
    view.jobs[0].suspend = true;
    view.jobs[0].meta.created_at = wall(100);
    const Lifecycle waiting = decide_lifecycle(view, moment(110));
    EXPECT_EQ(waiting.state, JobState::kSuspended);
    EXPECT_TRUE(waiting.actions.empty());
    EXPECT_EQ(waiting.wake_after, seconds{20});
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 143", wall(111)};
    const Lifecycle replacing = decide_lifecycle(view, moment(130));
    EXPECT_EQ(replacing.status.attempt, 1);
    EXPECT_EQ(replacing.actions, (Actions{DeleteJob{"resnet-a1", "uid-resnet-a1", ""}}));
}

// The operator was away while the user suspended the job, changed numNodes and resumed it.
TEST(LifecycleReplace, ReplacesAJobWithAnotherNumberOfRanks) {
    TrainingJobView view = make_running_view();
    view.jobs[0].meta.resource_version = "7";
    view.job.spec.trainer.node_count = 3;
    const Lifecycle replacing = decide_lifecycle(view, moment(100));
    EXPECT_EQ(replacing.state, JobState::kRestarting);
    EXPECT_EQ(
        replacing.message,
        "Job resnet-a1 has 2 ranks, not 3 (numNodes); a new one takes its place.");
    EXPECT_EQ(replacing.actions, (Actions{DeleteJob{"resnet-a1", "uid-resnet-a1", "7"}}));
    EXPECT_EQ(replacing.status.attempt, 1);
    EXPECT_EQ(replacing.status.restarts, 0);
    view.jobs[0].meta.deleting_since = wall(100);
    EXPECT_TRUE(decide_lifecycle(view, moment(101)).actions.empty());
    view.jobs.clear();
    view.pods.clear();
    const Lifecycle again = decide_lifecycle(view, moment(102));
    ASSERT_EQ(again.actions.size(), 1U);
    EXPECT_EQ(std::get<CreateJob>(again.actions[0]).job.node_count, 3);
    view.jobs = {make_job(view, 1)};
    EXPECT_EQ(decide_lifecycle(view, moment(200)).state, JobState::kRunning)
        << "this is the new Job";
}

}  // namespace
}  // namespace stoker::control
