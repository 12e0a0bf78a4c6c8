#include "operator/core/status/judge_placement.h"

#include <gtest/gtest.h>

#include "operator/core/status/summarize_training_job.h"
#include "tests/unit/operator/core/make_clairvoyant.h"

namespace stoker::control {
namespace {

// All nodes of the job are in a group that its reads place.
TrainingJobView make_placed_view() {
    TrainingJobView view = make_clairvoyant_view();
    view.peers["uid-imagenet"] = {
        "uid-imagenet", 7, {{"n1", "10.0.0.1:7331", 1}, {"n2", "10.0.0.2:7331", 1}}, make_reads()};
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
    EXPECT_EQ(condition->message, "Each node keeps the samples that its own ranks read most.");
}

TEST(JudgePlacement, JobsWithoutSuchADatasetOrACacheHaveNone) {
    EXPECT_EQ(reason_of(make_running_view()), "none");
    TrainingJobView view = make_placed_view();
    view.pool.name.clear();
    EXPECT_EQ(reason_of(view), "none");
}

TEST(JudgePlacement, IsUnknownUntilAllNodesShareSamples) {
    TrainingJobView view = make_placed_view();
    view.peers["uid-imagenet"].reads.reset();
    view.peers["uid-imagenet"].members.pop_back();
    const auto condition = judge_placement(view, 1);
    EXPECT_EQ(condition->status, ConditionStatus::kUnknown);
    EXPECT_EQ(condition->reason, "Waiting");
    EXPECT_EQ(
        condition->message,
        "Samples of dataset train are placed by a hash until the nodes of all 2 pods share them.");
    view.peers.clear();
    EXPECT_EQ(reason_of(view), "Waiting");
}

TEST(JudgePlacement, NamesAnotherReader) {
    TrainingJobView view = make_placed_view();
    view.peers["uid-imagenet"].reads.reset();
    const auto condition = judge_placement(view, 1);
    EXPECT_EQ(condition->status, ConditionStatus::kFalse);
    EXPECT_EQ(condition->reason, "OtherReader");
    EXPECT_EQ(
        condition->message,
        "Samples of dataset train are placed by a hash while another job, or another entry of this "
        "one, reads it, too.");
    view.peers["uid-imagenet"].reads = make_reads();
    view.peers["uid-imagenet"].reads->job_uid = "uid-other";
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

TEST(JudgePlacement, TheWorstDatasetCounts) {
    TrainingJobView view = make_placed_view();
    view.datasets.datasets.push_back(view.datasets.datasets[0]);
    view.datasets.datasets[1].uid = "uid-of-another-dataset";
    EXPECT_EQ(reason_of(view), "Waiting");
    view.datasets.datasets[1].clairvoyant.reset();
    EXPECT_EQ(reason_of(view), "InForce");
}

TEST(JudgePlacement, OtherReadsAreToldForTheRestOfTheAttempt) {
    TrainingJobView view = make_placed_view();
    view.reports = {make_report(view, 1, 100)};
    view.reports[0].datasets[0].reads_differ = true;
    const auto condition = judge_placement(view, 1);
    EXPECT_EQ(condition->status, ConditionStatus::kFalse);
    EXPECT_EQ(condition->reason, "ReadsDiffer");
    EXPECT_EQ(
        condition->message,
        "The program reads dataset train in another order than spec.datasets[train].clairvoyant "
        "says: check order, seed and dropLast, and that the program calls set_epoch(). Samples are "
        "placed by a hash until the next attempt.");

    const Moment now = moment(101);
    view.job.status = summarize_training_job(view, decide_lifecycle(view, now), now);
    view.reports.clear();
    EXPECT_EQ(
        judge_placement(view, 1),
        *find_condition(view.job.status.conditions, "ClairvoyantPlacement"))
        << "the sidecar is gone";
    EXPECT_EQ(judge_placement(view, 2)->reason, "InForce") << "the next attempt is judged anew";
}

}  // namespace
}  // namespace stoker::control
