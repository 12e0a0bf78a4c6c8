#include "operator/core/sweep/plan_packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_packing.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

PackingView view_of(const Dataset& dataset) {
    PackingView view;
    view.dataset = dataset;
    return view;
}

// The Job of the Dataset as it was before its packing changed.
Job make_old_job() {
    Dataset before = make_packing_dataset();
    before.spec.packing->chunk_bytes = mib(16);
    return make_packing_job(before);
}

std::string judge(const PackingView& view) {
    const Condition packed = judge_packing(view).packed;
    return std::string{to_string(packed.status)} + " " + packed.reason + ": " + packed.message;
}

TEST(PlanPacking, CreatesOneJob) {
    PackingView view = view_of(make_packing_dataset());
    EXPECT_TRUE(plan_packing(view).create);
    view.jobs = {make_packing_job(view.dataset)};
    EXPECT_EQ(plan_packing(view), PackingPlan{});
}

TEST(PlanPacking, LeavesOtherDatasetsAlone) {
    Dataset dataset = make_packed_dataset();
    EXPECT_FALSE(plan_packing(view_of(dataset)).create) << "the Dataset is packed";
    dataset.spec.packing.reset();
    EXPECT_FALSE(plan_packing(view_of(dataset)).create);
    dataset = make_packing_dataset();
    dataset.spec.format = DatasetFormat::kObjects;
    EXPECT_FALSE(plan_packing(view_of(dataset)).create) << "the Dataset is invalid";
    dataset = make_packing_dataset();
    dataset.meta.deleting_since = WallTime{};
    EXPECT_FALSE(plan_packing(view_of(dataset)).create);
}

TEST(PlanPacking, KeepsAnEndedJob) {
    for (const bool succeeded : {false, true}) {
        PackingView view = view_of(make_packing_dataset());
        view.jobs = {make_ended_packing_job(view.dataset, succeeded)};
        EXPECT_EQ(plan_packing(view), PackingPlan{}) << succeeded;
    }
}

TEST(PlanPacking, ReplacesTheJobOfAnotherSpecOnceItIsGone) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_old_job()};
    const PackingPlan plan = plan_packing(view);
    EXPECT_EQ(plan.remove, view.jobs);
    EXPECT_FALSE(plan.create);
    view.jobs[0].meta.deleting_since = WallTime{};
    EXPECT_EQ(plan_packing(view), PackingPlan{});
    view.pods = {make_packing_pod(view.jobs[0], PodPhase::kRunning)};
    view.jobs.clear();
    EXPECT_FALSE(plan_packing(view).create) << "the old Job's pod still writes";
    view.pods[0].phase = PodPhase::kFailed;
    EXPECT_TRUE(plan_packing(view).create);
}

TEST(PlanPacking, RemovesTheJobWithTheField) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_packing_job(view.dataset)};
    view.dataset.spec.packing.reset();
    EXPECT_EQ(plan_packing(view).remove, view.jobs);
}

TEST(PlanPacking, IgnoresJobsOfOtherOwners) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_old_job()};
    view.jobs[0].meta.owners.clear();
    EXPECT_THAT(plan_packing(view).remove, IsEmpty());
    EXPECT_TRUE(plan_packing(view).create);
    view.jobs = {make_ended_packing_job(view.dataset, true)};
    view.jobs[0].meta.owners[0].uid = "another Dataset";
    EXPECT_EQ(judge_packing(view).status.packed_digest, "") << "a Job that claims to have packed";
}

TEST(JudgePacking, IsPackedWhenTheJobHasSucceeded) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_ended_packing_job(view.dataset, true)};
    view.pods = {make_successful_packing_pod(view.jobs[0])};
    EXPECT_EQ(judge(view), "True Packed: 797 samples (1Mi) in 3 chunks are at s3://packed/digits.");
    const DatasetPackingStatus status = judge_packing(view).status;
    EXPECT_EQ(status.packed_digest, packing_digest(view.dataset.spec));
    EXPECT_EQ(status.job, view.jobs[0].meta.name);
    EXPECT_EQ(status.samples, 797);
}

TEST(JudgePacking, StaysPackedWithoutTheJob) {
    PackingView view = view_of(make_packed_dataset());
    EXPECT_EQ(judge(view), "True Packed: The chunks are at s3://packed/digits.");
    EXPECT_EQ(judge_packing(view).status, *view.dataset.status.packing);
}

TEST(JudgePacking, IsNotPackedAfterAChange) {
    PackingView view = view_of(make_packed_dataset());
    view.dataset.status.packing->samples = 797;
    view.dataset.spec.packing->chunk_bytes = mib(8);
    EXPECT_EQ(judge(view), "False Starting: The packing Job is being created.");
    EXPECT_EQ(judge_packing(view).status.packed_digest, "");
    EXPECT_EQ(judge_packing(view).status.samples, 0);
}

TEST(JudgePacking, CountsOnlyWhatAPodHasWritten) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_ended_packing_job(view.dataset, true)};
    view.pods = {make_successful_packing_pod(view.jobs[0])};
    for (const std::string words : {"", "not JSON", "[]", R"({"samples":"many"})"}) {
        view.pods[0].trainer.message = words;
        EXPECT_EQ(judge_packing(view).status.samples, 0) << words;
        EXPECT_THAT(judge(view), HasSubstr("True Packed")) << words;
    }
}

TEST(JudgePacking, TakesCountsThatArriveLate) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_ended_packing_job(view.dataset, true)};
    view.dataset.status.packing = judge_packing(view).status;
    EXPECT_TRUE(is_packed(view.dataset));
    view.pods = {make_successful_packing_pod(view.jobs[0])};
    view.dataset.status.packing = judge_packing(view).status;
    EXPECT_EQ(view.dataset.status.packing->samples, 797);
    view.pods.clear();
    EXPECT_EQ(judge_packing(view).status, *view.dataset.status.packing);
}

TEST(JudgePacking, QuotesTheLastFailedPod) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_ended_packing_job(view.dataset, false)};
    EXPECT_THAT(judge(view), HasSubstr("False Failed: Job "));
    EXPECT_THAT(judge(view), HasSubstr("the Job controller's words"));
    view.pods = {make_packing_pod(view.jobs[0], PodPhase::kFailed)};
    view.pods[0].trainer.message =
        "3 of 9 chunks written\ns3://packed has chunks of another pack\n";
    EXPECT_THAT(judge(view), HasSubstr("has failed: s3://packed has chunks of another pack. "));
    EXPECT_THAT(judge(view), HasSubstr("kubectl delete job " + view.jobs[0].meta.name + " -n ml"));
    view.pods[0].trainer.reason = "OOMKilled";
    EXPECT_THAT(judge(view), HasSubstr("sidecar.packingResources"));
}

TEST(JudgePacking, TellsTheDeadlineBeforeAnEarlierPodsError) {
    PackingView view = view_of(make_packing_dataset());
    view.jobs = {make_ended_packing_job(view.dataset, false)};
    view.jobs[0].end->reason = "DeadlineExceeded";
    view.pods = {make_packing_pod(view.jobs[0], PodPhase::kFailed)};
    view.pods[0].trainer.message = "connection reset\n";
    EXPECT_THAT(
        judge(view),
        HasSubstr(
            "has failed: the Job controller's words. An earlier pod failed: connection reset. "));
    EXPECT_THAT(judge(view), HasSubstr("raise spec.packing.activeDeadlineSeconds"));
    view.pods.clear();
    EXPECT_THAT(judge(view), HasSubstr("words. Nothing at the destination"));
}

TEST(JudgePacking, TellsWhatTheJobWaitsFor) {
    PackingView view = view_of(make_packing_dataset());
    view.refusal = "exceeded quota";
    EXPECT_EQ(judge(view), "False Refused: The packing Job: exceeded quota");
    view.jobs = {make_packing_job(view.dataset)};
    view.diagnosis = "violates PodSecurity";
    EXPECT_THAT(judge(view), HasSubstr("False Starting: Job "));
    EXPECT_THAT(judge(view), HasSubstr("violates PodSecurity"));
    view.diagnosis.clear();
    view.pods = {make_packing_pod(view.jobs[0], PodPhase::kPending)};
    view.pods[0].trainer.waiting_reason = "ImagePullBackOff";
    EXPECT_THAT(judge(view), HasSubstr("starts: ImagePullBackOff"));
    view.pods[0].phase = PodPhase::kRunning;
    EXPECT_THAT(judge(view), HasSubstr("False Packing: "));
    EXPECT_THAT(judge(view), HasSubstr("kubectl logs -f job/"));
}

}  // namespace
}  // namespace stoker::control
