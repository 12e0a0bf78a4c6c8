#include "operator/core/lifecycle/pin_revisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/plan_training_job.h"
#include "tests/unit/operator/core/fake_kueue.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOld = "00000000000000aa";
constexpr const char* kNew = "00000000000000bb";

// A view whose ranks reported these revisions at second 100.
TrainingJobView view_of(const std::vector<std::string>& revisions, std::int64_t attempt = 1) {
    TrainingJobView view = make_running_view(attempt);
    for (std::size_t rank = 0; rank < revisions.size(); ++rank) {
        SidecarReport report = make_report(view, static_cast<std::int64_t>(rank), 100);
        report.datasets[0].read_revision = revisions[rank];
        view.reports.push_back(report);
    }
    return view;
}

TrainingJobPlan plan(const TrainingJobView& view, std::int64_t second = 100) {
    return plan_training_job(view, moment(second));
}

std::string condition(const TrainingJobStatus& status) {
    const Condition* found = find_condition(status.conditions, "OriginUnchanged");
    return found == nullptr ? "" : std::string{to_string(found->status)} + " " + found->reason;
}

std::string message(const TrainingJobStatus& status) {
    return find_condition(status.conditions, "OriginUnchanged")->message;
}

TEST(PinRevisions, PinsTheLowestListedRanksRevision) {
    TrainingJobView view = view_of({"", kNew});
    EXPECT_EQ(plan(view).status.datasets[0].revision, kNew);
    view = view_of({kOld, kNew});
    std::swap(view.reports[0], view.reports[1]);
    const TrainingJobPlan made = plan(view);
    EXPECT_EQ(made.status.datasets[0].revision, kOld);
    EXPECT_EQ(made.status.datasets[0].revision_attempt, 1);
    EXPECT_EQ(condition(made.status), "True Unchanged");
}

TEST(PinRevisions, KeepsThePinDuringTheAttempt) {
    TrainingJobView view = view_of({"", kNew});
    view.job.status = plan(view).status;
    view.reports[0].datasets[0].read_revision = kOld;
    EXPECT_EQ(plan(view).status.datasets[0].revision, kNew);
}

TEST(PinRevisions, NextAttemptTakesTheNewRevision) {
    TrainingJobView view = view_of({kNew, kNew}, 2);
    JobDatasetStatus before;
    before.name = "train";
    before.revision = kOld;
    before.revision_attempt = 1;
    before.changed_key = "a.png";
    view.job.status.datasets = {before};
    const TrainingJobStatus status = plan(view).status;
    EXPECT_EQ(status.datasets[0].revision, kNew);
    EXPECT_EQ(status.datasets[0].revision_attempt, 2);
    EXPECT_EQ(status.datasets[0].changed_key, "");
}

TEST(PinRevisions, ResumedAttemptTakesTheNewRevision) {
    TrainingJobView view = view_of({kOld, kOld});
    view.job.status = plan(view).status;
    ASSERT_EQ(view.job.status.datasets[0].revision, kOld);
    view.job.spec.suspend = true;
    view.job.status = plan(view, 101).status;
    TrainingJobView gone = view;
    gone.jobs.clear();
    gone.pods.clear();
    gone.reports.clear();
    gone.job.status = plan(gone, 102).status;
    gone.job.spec.suspend = false;
    const TrainingJobPlan resumed = plan(gone, 103);
    EXPECT_TRUE(resumed.pins.pins.empty());
    TrainingJobView again = view_of({"", kNew});
    again.job.status = resumed.status;
    again.job.status.datasets[0].changed_key = "a.png";
    const TrainingJobPlan made = plan(again, 104);
    EXPECT_EQ(made.status.attempt, 1);
    EXPECT_EQ(made.status.datasets[0].revision, kNew);
    EXPECT_EQ(made.status.datasets[0].changed_key, "");
    ASSERT_EQ(made.pins.pins.size(), 1U);
    EXPECT_EQ(domain::to_string(made.pins.pins[0].revision), kNew);
}

TEST(PinRevisions, ReadmittedJobTakesTheNewRevision) {
    TrainingJobView view = make_admitted_view();
    view.jobs.clear();
    view.pods.clear();
    JobDatasetStatus before;
    before.name = "train";
    before.revision = kOld;
    before.revision_attempt = 1;
    view.job.status.datasets = {before};
    const TrainingJobPlan admitted = plan(view);
    EXPECT_EQ(admitted.status.attempt, 1);
    EXPECT_TRUE(admitted.pins.pins.empty());
    EXPECT_EQ(admitted.status.datasets[0].revision_attempt, 0);
}

TEST(PinRevisions, UsesOnlyFreshReportsOfTheAttempt) {
    TrainingJobView view = view_of({kOld});
    EXPECT_EQ(plan(view, 161).status.datasets[0].revision, "");
    view.reports[0].pod = make_pod(view, 7, 0).meta.name;
    EXPECT_EQ(plan(view).status.datasets[0].revision, "");
    EXPECT_EQ(condition(plan(view).status), "Unknown NotListed");
}

TEST(PinRevisions, SendsPinsToTheAttemptsSidecars) {
    TrainingJobView view = view_of({kOld, kNew});
    view.reports[0].datasets[0].marks = {1000, {1, 2, 3}};
    view.reports[1].datasets[0].marks = {1001, {4, 5, 6}};
    const AttemptPins pins = plan(view).pins;
    EXPECT_EQ(pins.job_uid, "uid-resnet");
    EXPECT_EQ(pins.pod_prefix, "resnet-a1-");
    ASSERT_EQ(pins.pins.size(), 1U);
    EXPECT_EQ(
        pins.pins[0], (RevisionPin{"uid-imagenet", domain::RevisionId{0xAA}, {1000, {1, 2, 3}}}));
}

TEST(PinRevisions, NewOperatorPinsFromTheStatus) {
    TrainingJobView view = view_of({kOld, ""});
    view.job.status = plan(view).status;
    view.reports.clear();
    ASSERT_EQ(plan(view, 500).pins.pins.size(), 1U);
    EXPECT_EQ(plan(view, 500).pins.pins[0].revision, domain::RevisionId{0xAA});
}

TEST(PinRevisions, DoesNotPinJobsOfOneRankAndOriginsThatAreDirectories) {
    TrainingJobView view = view_of({kOld});
    view.job.spec.trainer.node_count = 1;
    EXPECT_TRUE(plan(view).pins.pins.empty());
    EXPECT_EQ(plan(view).status.datasets[0].revision, kOld) << "the status shows it nevertheless";
    view = view_of({kOld, kNew});
    view.datasets.datasets[0].source.volume = SourceVolume{};
    EXPECT_TRUE(plan(view).pins.pins.empty());
}

// The pods mount the node directory of the Dataset that they began with. A sidecar that starts
// again needs its pin again.
TEST(PinRevisions, PinsADatasetThatAnotherOneHasReplaced) {
    TrainingJobView view = view_of({kOld, kOld});
    view.job.status = plan(view).status;
    for (SidecarReport& report : view.reports) {
        report.mounts = {{"train", "uid-of-before"}};
        report.datasets.clear();  // believable_reports() drops other datasets
    }
    std::vector<RevisionPin> pins = plan(view, 101).pins.pins;
    ASSERT_EQ(pins.size(), 2U);
    EXPECT_EQ(pins[1], (RevisionPin{"uid-of-before", domain::RevisionId{0xAA}, {}}));
    view.reports[0].mounts = view.reports[1].mounts = {{"train", "uid-imagenet"}};
    EXPECT_EQ(plan(view, 101).pins.pins.size(), 1U);
    view.reports[0].mounts = {{"other", "uid-of-before"}};
    EXPECT_EQ(plan(view, 101).pins.pins.size(), 1U);
}

TEST(OriginChange, EndsTheAttemptAndNamesTheKey) {
    TrainingJobView view = view_of({kOld, kNew});
    view.job.status = plan(view).status;
    view.reports[1].datasets[0].origin_change = OriginChange{"cat/7.png", 1};
    const TrainingJobPlan made = plan(view, 101);
    EXPECT_EQ(made.status.attempt, 2);
    EXPECT_EQ(made.status.restarts, 1);
    EXPECT_EQ(condition(made.status), "False OriginChanged");
    EXPECT_THAT(message(made.status), HasSubstr("rank 1"));
    EXPECT_THAT(message(made.status), HasSubstr("key 'cat/7.png'"));
    EXPECT_THAT(message(made.status), HasSubstr(kOld));
    ASSERT_EQ(made.actions.size(), 1U);
    EXPECT_EQ(std::get<DeleteJob>(made.actions[0]).name, "resnet-a1");
    EXPECT_TRUE(made.pins.pins.empty());
    EXPECT_TRUE(std::ranges::any_of(
        made.events, [](const JobEvent& event) { return event.reason == "OriginChanged"; }));
    EXPECT_THAT(
        find_condition(made.status.conditions, "Finished")->message, HasSubstr("OriginChanged"));
}

TEST(OriginChange, NamesTheChangedPartOfALargeListing) {
    TrainingJobView view = view_of({kOld, kNew});
    view.reports[1].datasets[0].origin_change = OriginChange{"cat/7.png", 3907};
    EXPECT_THAT(message(plan(view).status), HasSubstr("among the 3907 keys from 'cat/7.png' on"));
    view.reports[1].datasets[0].origin_change = OriginChange{};
    EXPECT_THAT(message(plan(view).status), HasSubstr("not known"));
}

TEST(OriginChange, IsReportedUntilTheNextAttemptHasListed) {
    TrainingJobView view = view_of({kOld, kNew});
    view.reports[1].datasets[0].origin_change = OriginChange{"cat/7.png", 1};
    const TrainingJobStatus ended = plan(view).status;
    TrainingJobView next = view_of({}, 2);
    next.job.status = ended;
    EXPECT_EQ(condition(plan(next, 110).status), "False OriginChanged");
    next.reports = view_of({kNew, kNew}, 2).reports;
    EXPECT_EQ(condition(plan(next, 110).status), "True Unchanged");
}

TEST(OriginChange, CountsAgainstTheBackoffLimit) {
    TrainingJobView view = view_of({kOld, kNew}, 4);
    view.job.status.restarts = 3;
    view.reports[1].datasets[0].origin_change = OriginChange{"cat/7.png", 1};
    const TrainingJobStatus status = plan(view).status;
    EXPECT_TRUE(is_true(status.conditions, "Failed"));
    EXPECT_EQ(find_condition(status.conditions, "Failed")->reason, "BackoffLimitExceeded");
    EXPECT_EQ(condition(status), "False OriginChanged");
    view.job.status = status;
    view.reports.clear();
    EXPECT_EQ(condition(plan(view, 900).status), "False OriginChanged");
}

TEST(OriginChange, IgnoresReportsOfAnOlderAttempt) {
    TrainingJobView view = view_of({kOld, kNew}, 2);
    view.reports[1].datasets[0].origin_change = OriginChange{"cat/7.png", 1};
    view.reports[1].pod = make_pod(view, 1, 1).meta.name;
    EXPECT_EQ(plan(view).status.attempt, 2);
    EXPECT_EQ(plan(view, 200).status.attempt, 2) << "stale reports are ignored, too";
}

TEST(SampleChanged, ConditionNamesTheKeyAndTheAttemptContinues) {
    TrainingJobView view = view_of({kOld, kOld});
    view.job.status = plan(view).status;
    view.reports[0].datasets[0].changed_key = "dog/1.png";
    TrainingJobPlan made = plan(view, 101);
    EXPECT_EQ(made.status.attempt, 1);
    EXPECT_TRUE(made.actions.empty());
    EXPECT_EQ(condition(made.status), "False SampleChanged");
    EXPECT_THAT(message(made.status), HasSubstr("'dog/1.png'"));
    EXPECT_EQ(made.status.datasets[0].changed_key, "dog/1.png");
    EXPECT_TRUE(std::ranges::any_of(
        made.events, [](const JobEvent& event) { return event.reason == "SampleChanged"; }));
    view.job.status = made.status;
    view.reports[0].datasets[0].changed_key = "";
    made = plan(view, 102);
    EXPECT_EQ(condition(made.status), "False SampleChanged")
        << "a restarted sidecar does not clear the condition";
    EXPECT_TRUE(made.events.empty()) << "told once";
}

}  // namespace
}  // namespace stoker::control
