#include "operator/core/lifecycle/workload_state.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/plan_training_job.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

// A TrainingJob of a workload with two pods that run.
TrainingJobView make_workload_view() {
    TrainingJob job = make_training_job("pytorchjob-resnet");
    job.spec.workload_ref = WorkloadRef{"kubeflow.org/v1", "PyTorchJob", "resnet", "uid-workload"};
    TrainingJobView view = make_view(job);
    view.pods = {make_pod(view, 1, 0), make_pod(view, 1, 1)};
    view.pods[0].meta.name = "resnet-master-0";
    view.pods[1].meta.name = "resnet-worker-0";
    for (Pod& pod : view.pods) {
        pod.meta.labels.clear();
    }
    return view;
}

std::string state_of(const TrainingJobStatus& status) {
    return find_condition(status.conditions, "Finished")->reason;
}

TEST(WorkloadState, FollowsThePods) {
    TrainingJobView view = make_workload_view();
    EXPECT_EQ(judge_workload(view).state, JobState::kRunning);
    view.pods[1].ready = false;
    EXPECT_EQ(judge_workload(view).state, JobState::kStarting);
    EXPECT_THAT(judge_workload(view).message, HasSubstr("1 of 2 pods of PyTorchJob resnet run"));
    view.pods[1].phase = PodPhase::kSucceeded;
    EXPECT_EQ(judge_workload(view).state, JobState::kRunning);
    view.pods.clear();
    EXPECT_EQ(judge_workload(view).state, JobState::kWaiting);
}

TEST(WorkloadState, IsStartingIfTheWorkloadWantsMorePodsThanRun) {
    TrainingJobView view = make_workload_view();
    view.workload.pod_count = 3;
    EXPECT_EQ(judge_workload(view).state, JobState::kStarting);
}

TEST(WorkloadState, EndsWithTheWorkload) {
    TrainingJobView view = make_workload_view();
    view.workload.end = WorkloadEnd{true, "all done", wall(50)};
    EXPECT_EQ(judge_workload(view).state, JobState::kComplete);
    EXPECT_THAT(judge_workload(view).message, HasSubstr("all done"));
    const TrainingJobPlan plan = plan_training_job(view, moment(60));
    EXPECT_EQ(state_of(plan.status), "Complete");
    EXPECT_EQ(plan.status.completion_time, wall(50));
    view.job.status = plan.status;
    view.workload.end.reset();
    EXPECT_EQ(state_of(plan_training_job(view, moment(99)).status), "Complete");
    view.job.status = {};
    view.workload.end = WorkloadEnd{false, "", std::nullopt};
    const TrainingJobPlan failed = plan_training_job(view, moment(60));
    EXPECT_EQ(find_condition(failed.status.conditions, "Failed")->reason, "WorkloadFailed");
}

TEST(WorkloadState, StartsNothingInAnyState) {
    for (const bool with_pods : {false, true}) {
        TrainingJobView view = make_workload_view();
        if (!with_pods) {
            view.pods.clear();
        }
        EXPECT_TRUE(plan_training_job(view, moment(60)).actions.empty());
    }
}

TEST(WorkloadState, RepeatedPlanChangesNothingAndKeepsThePoolOfTheAttempt) {
    TrainingJobView view = make_workload_view();
    const TrainingJobPlan first = plan_training_job(view, moment(60));
    EXPECT_EQ(state_of(first.status), "Running");
    EXPECT_EQ(first.status.attempt, 1);
    ASSERT_TRUE(first.status.attempt_pool);
    EXPECT_EQ(first.status.attempt_pool->name, "nvme");
    EXPECT_TRUE(first.pins.pins.empty());
    view.job.status = first.status;
    const TrainingJobPlan second = plan_training_job(view, moment(60));
    EXPECT_EQ(second.status, first.status);
    EXPECT_TRUE(second.events.empty());
}

TEST(WorkloadState, CountsTheReportsOfAllItsPods) {
    TrainingJobView view = make_workload_view();
    SidecarReport report;
    report.pod = "resnet-worker-0";
    view.reports = {report};
    EXPECT_EQ(reports_of_attempt(view, 1).size(), 1U);
}

}  // namespace
}  // namespace stoker::control
