#include "operator/core/plan_training_job.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(PlanTrainingJob, ReportsTheFirstStateOnce) {
    TrainingJobView view = make_view();
    const TrainingJobPlan plan = plan_training_job(view, moment(10));
    ASSERT_EQ(plan.events.size(), 1U);
    EXPECT_EQ(plan.events[0], (JobEvent{false, "Starting", "The pods are being created."}));
    EXPECT_EQ(plan.actions.size(), 2U);
    view.job.status = plan.status;
    EXPECT_TRUE(plan_training_job(view, moment(11)).events.empty());
}

TEST(PlanTrainingJob, WarnsOnRestartAndOnWaiting) {
    TrainingJobView view = make_running_view();
    view.job.status = plan_training_job(view, moment(10)).status;
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(50)};
    const TrainingJobPlan plan = plan_training_job(view, moment(51));
    ASSERT_EQ(plan.events.size(), 1U);
    EXPECT_TRUE(plan.events[0].warning);
    EXPECT_EQ(plan.events[0].reason, "Restarting");
    TrainingJobView waiting = make_view();
    waiting.datasets = resolve_datasets(waiting.job, {});
    EXPECT_TRUE(plan_training_job(waiting, moment(1)).events.at(0).warning);
}

TEST(PlanTrainingJob, WarnsOncePerReasonWhenPodsAreRefused) {
    TrainingJobView view = make_running_view();
    view.pods.clear();
    view.jobs[0].ready = 0;
    view.job.status = plan_training_job(view, moment(10)).status;
    view.diagnosis.words = "The pods cannot be created: forbidden.";
    const TrainingJobPlan plan = plan_training_job(view, moment(11));
    ASSERT_EQ(plan.events.size(), 1U);
    EXPECT_EQ(plan.events[0], (JobEvent{true, "Starting", view.diagnosis.words}));
    view.job.status = plan.status;
    EXPECT_TRUE(plan_training_job(view, moment(12)).events.empty());
}

TEST(PlanTrainingJob, ReportsASuspensionOnce) {
    TrainingJobView view = make_running_view();
    view.job.status = plan_training_job(view, moment(10)).status;
    view.job.spec.suspend = true;
    const TrainingJobPlan plan = plan_training_job(view, moment(11));
    ASSERT_EQ(plan.events.size(), 1U);
    EXPECT_EQ(plan.events[0].reason, "Suspended");
}

TEST(PlanTrainingJob, ReportsEachNewCacheCondition) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 10)};
    view.job.status = plan_training_job(view, moment(10)).status;
    view.allocation =
        JobAllocation{{}, "nvme", gib(4), gib(1), AllocationReason::kPoolFull, "Full.", {gib(1)}};
    const TrainingJobPlan plan = plan_training_job(view, moment(11));
    ASSERT_EQ(plan.events.size(), 1U);
    EXPECT_EQ(plan.events[0], (JobEvent{false, "PoolFull", "Full."}));
    view.job.status = plan.status;
    view.allocation->message = "Still full.";
    EXPECT_TRUE(plan_training_job(view, moment(12)).events.empty());
}

TEST(PlanTrainingJob, LeavesAJobThatIsBeingDeletedToTheGarbageCollector) {
    TrainingJobView view = make_running_view();
    view.job.meta.deleting_since = wall(5);
    const TrainingJobPlan plan = plan_training_job(view, moment(10));
    EXPECT_TRUE(plan.actions.empty());
    EXPECT_TRUE(plan.events.empty());
    EXPECT_EQ(plan.status, view.job.status);
}

TEST(PlanTrainingJob, RequeuesToDetectSilentNodes) {
    const TrainingJobView view = make_running_view();
    EXPECT_EQ(plan_training_job(view, moment(10)).requeue_after, kReportAgeMax);
    EXPECT_FALSE(plan_training_job(make_view(), moment(10)).requeue_after);
}

}  // namespace
}  // namespace stoker::control
