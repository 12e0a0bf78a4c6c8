#include "operator/core/status/judge_placement.h"

#include <gtest/gtest.h>

#include "operator/core/status/summarize_training_job.h"
#include "tests/unit/operator/core/make_clairvoyant.h"

namespace stoker::control {
namespace {

using Rule = Placing::Rule;

// Samples are placed by the job's reads.
TrainingJobView make_placed_view() {
    TrainingJobView view = make_clairvoyant_view();
    view.placings["uid-imagenet"] = {Rule::kReads, "uid-resnet"};
    return view;
}

std::string reason_of(const TrainingJobView& view) {
    const auto condition = judge_placement(view, 1);
    return condition ? condition->reason : "none";
}

TEST(JudgePlacement, IsTrueWhileTheJobsReadsPlaceTheSamples) {
    const auto condition = judge_placement(make_placed_view(), 1);
    ASSERT_TRUE(condition);
    EXPECT_EQ(condition->status, ConditionStatus::kTrue);
    EXPECT_EQ(condition->reason, "InForce");
    EXPECT_EQ(
        condition->message, "Each node was told to keep the samples that its own ranks read most.");
}

TEST(JudgePlacement, JobsWithoutSuchADatasetOrACacheHaveNone) {
    EXPECT_EQ(reason_of(make_running_view()), "none");
    TrainingJobView view = make_placed_view();
    view.pool.name.clear();
    EXPECT_EQ(reason_of(view), "none");
}

TEST(JudgePlacement, IsUnknownUntilAllNodesShareSamples) {
    TrainingJobView view = make_placed_view();
    view.placings["uid-imagenet"] = {};
    const auto condition = judge_placement(view, 1);
    EXPECT_EQ(condition->status, ConditionStatus::kUnknown);
    EXPECT_EQ(condition->reason, "Waiting");
    EXPECT_EQ(
        condition->message,
        "Samples of dataset train are placed by a hash until the nodes of all 2 pods share them.");
    view.placings.clear();
    EXPECT_EQ(reason_of(view), "Waiting");
}

TEST(JudgePlacement, NamesAnotherReader) {
    TrainingJobView view = make_placed_view();
    view.placings["uid-imagenet"] = {Rule::kOtherReader};
    const auto condition = judge_placement(view, 1);
    EXPECT_EQ(condition->status, ConditionStatus::kFalse);
    EXPECT_EQ(condition->reason, "OtherReader");
    EXPECT_EQ(
        condition->message,
        "Samples of dataset train are placed by a hash while another job, or another entry of this "
        "one, reads it, too, and for 10 minutes after its reads were given up.");
    view.placings["uid-imagenet"] = {Rule::kReads, "uid-other"};
    EXPECT_EQ(reason_of(view), "OtherReader");
    view.placings["uid-imagenet"] = {Rule::kRefuted, "uid-other"};
    EXPECT_EQ(reason_of(view), "OtherReader");
}

TEST(JudgePlacement, NamesWhatMakesItUseless) {
    TrainingJobView view = make_placed_view();
    view.datasets.datasets[0].peers = false;
    EXPECT_EQ(reason_of(view), "PeersOff");
    EXPECT_EQ(
        judge_placement(view, 1)->message,
        "The nodes do not share the samples of dataset train (spec.peers Off, or a volume). "
        "Placement Clairvoyant has no effect.");
}

TEST(JudgePlacement, NamesTheOneNodeOfAllPods) {
    TrainingJobView view = make_placed_view();
    view.placings["uid-imagenet"] = {Rule::kOneNode};
    EXPECT_EQ(reason_of(view), "OneNode");
}

TEST(JudgePlacement, TheLastAnswerStaysOnceAPodHasSucceeded) {
    TrainingJobView view = make_placed_view();
    const Moment now = moment(101);
    view.job.status = summarize_training_job(view, decide_lifecycle(view, now), now);
    view.placings.clear();
    EXPECT_EQ(reason_of(view), "Waiting");
    view.pods[0].phase = PodPhase::kSucceeded;
    EXPECT_EQ(reason_of(view), "InForce");
    EXPECT_EQ(judge_placement(view, 2)->reason, "Waiting") << "the next attempt is judged anew";
}

TEST(JudgePlacement, AJobThatHasEndedWaitsForNothing) {
    TrainingJobView view = make_placed_view();
    view.placings.clear();
    const Moment now = moment(101);
    view.job.status = summarize_training_job(view, decide_lifecycle(view, now), now);
    Lifecycle complete = decide_lifecycle(view, now);
    complete.state = JobState::kComplete;
    const auto placed = [&] {
        const TrainingJobStatus status = summarize_training_job(view, complete, now);
        return *find_condition(status.conditions, "ClairvoyantPlacement");
    };
    EXPECT_EQ(placed().reason, "Finished");
    view.placings = make_placed_view().placings;
    view.job.status = summarize_training_job(view, decide_lifecycle(view, now), now);
    EXPECT_EQ(placed().reason, "InForce");
}

TEST(JudgePlacement, TheWorstDatasetCounts) {
    TrainingJobView view = make_placed_view();
    view.datasets.datasets.push_back(view.datasets.datasets[0]);
    view.datasets.datasets[1].uid = "uid-of-another-dataset";
    EXPECT_EQ(reason_of(view), "Waiting");
    view.datasets.datasets[1].clairvoyant.reset();
    EXPECT_EQ(reason_of(view), "InForce");
}

TEST(JudgePlacement, OtherReadsAreToldUntilTheNextAttemptOrASuspension) {
    TrainingJobView view = make_placed_view();
    view.placings["uid-imagenet"] = {Rule::kRefuted, "uid-resnet"};
    const auto condition = judge_placement(view, 1);
    EXPECT_EQ(condition->status, ConditionStatus::kFalse);
    EXPECT_EQ(condition->reason, "ReadsDiffer");
    EXPECT_EQ(
        condition->message,
        "The program reads dataset train in another order than spec.datasets[train].clairvoyant "
        "says: check order, seed and dropLast, and that the program calls set_epoch(). Samples of "
        "all the job's datasets are placed by a hash until the job is suspended or starts its next "
        "attempt.");

    const Moment now = moment(101);
    view.job.status = summarize_training_job(view, decide_lifecycle(view, now), now);
    view.placings["uid-imagenet"] = {Rule::kReads, "uid-resnet"};
    EXPECT_EQ(
        judge_placement(view, 1),
        *find_condition(view.job.status.conditions, "ClairvoyantPlacement"))
        << "the sidecar is gone";
    EXPECT_EQ(judge_placement(view, 2)->reason, "InForce") << "the next attempt is judged anew";
    view.job.spec.suspend = true;
    EXPECT_EQ(reason_of(view), "InForce") << "the spec may change now";
}

}  // namespace
}  // namespace stoker::control
