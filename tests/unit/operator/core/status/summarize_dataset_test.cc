#include "operator/core/status/summarize_dataset.h"

#include <gtest/gtest.h>

#include "operator/core/view/totals.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

JobUse make_user(const std::string& name, const std::string& uid, const std::string& pool) {
    JobUse user;
    user.job.edit().meta.name = name;
    user.job.edit().meta.uid = uid;
    user.pool.name = pool;
    return user;
}

void set_running(std::optional<WallTime> since, JobUse& user) {
    user.job.edit().status.conditions.clear();
    if (since) {
        Condition running;
        running.type = "Running";
        running.status = ConditionStatus::kTrue;
        running.last_transition = *since;
        user.job.edit().status.conditions = {running};
    }
}

// The dataset of make_running_view(), used by its job.
DatasetView make_dataset_view() {
    DatasetView view;
    view.dataset = make_dataset();
    view.users = {make_user("resnet", "uid-resnet", "nvme")};
    set_running(wall(0), view.users[0]);
    view.nodes = {"n1", "n2", "n3"};
    return view;
}

SidecarReport report_of(std::int64_t rank, std::int64_t second, Bytes resident) {
    SidecarReport report = make_report(make_running_view(), rank, second);
    report.datasets[0].resident_bytes = resident;
    report.datasets[0].resident_samples = 10;
    return report;
}

void expect_ready(const DatasetStatus& status, ConditionStatus value, const std::string& reason) {
    const Condition* ready = find_condition(status.conditions, "Ready");
    ASSERT_NE(ready, nullptr);
    EXPECT_EQ(ready->status, value) << ready->message;
    EXPECT_EQ(ready->reason, reason) << ready->message;
}

TEST(SummarizeDataset, ReportsThatItIsNotListedYet) {
    DatasetView view = make_dataset_view();
    view.users.clear();
    const DatasetStatus status = summarize_dataset(view, moment(10));
    expect_ready(status, ConditionStatus::kUnknown, "NotListed");
    EXPECT_EQ(status.columns, DatasetColumns{});
    EXPECT_EQ(find_condition(status.conditions, "Indexed")->status, ConditionStatus::kFalse);
}

TEST(SummarizeDataset, CountsBytesOnTheNodes) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1)), report_of(1, 101, gib(2))};
    view.reports[0].datasets[0].cache_bytes_read = mib(3);
    view.reports[0].datasets[0].miss_bytes_read = mib(1);
    const DatasetStatus status = summarize_dataset(view, moment(102));
    expect_ready(status, ConditionStatus::kTrue, "Listed");
    EXPECT_EQ(status.total_bytes, count_of(gib(4)));
    EXPECT_EQ(status.samples, 1000);
    EXPECT_EQ(status.cached_bytes, count_of(gib(3)));
    EXPECT_EQ(status.cached_samples, 20);
    EXPECT_EQ(status.cached_percentage, 37) << "1.5 of 4 GiB on each of two nodes";
    EXPECT_EQ(status.nodes, 2);
    EXPECT_EQ(status.jobs, 1);
    EXPECT_EQ(status.hit_ratio, "0.75");
    EXPECT_EQ(status.sampled_at, wall(101));
    EXPECT_EQ(
        status.placements,
        (std::vector<DatasetPlacement>{
            {"nvme", "n2", count_of(gib(2)), 10}, {"nvme", "n1", count_of(gib(1)), 10}}));
    EXPECT_EQ(status.columns.size, "4Gi");
    EXPECT_EQ(status.columns.cached, "3Gi");
    EXPECT_EQ(status.columns.cached_percentage, "37%");
    EXPECT_EQ(status.columns.hit, "75%");
}

TEST(SummarizeDataset, KeepsBytesAndReadinessWithoutJobs) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1))};
    view.dataset.status = summarize_dataset(view, moment(100));
    view.users.clear();
    view.reports.clear();
    const DatasetStatus status = summarize_dataset(view, moment(100'000));
    expect_ready(status, ConditionStatus::kTrue, "Listed");
    EXPECT_EQ(status.cached_bytes, count_of(gib(1)));
    EXPECT_EQ(status.sampled_at, wall(100));
    view.nodes = {"n2"};
    EXPECT_EQ(summarize_dataset(view, moment(100'000)).cached_bytes, 0) << "the node is gone";
}

// A leader reports no bytes until its directory is open, which may take as long as the listing.
TEST(SummarizeDataset, KeepsBytesUntilTheLeaderHasCountedThem) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1))};
    view.dataset.status = summarize_dataset(view, moment(100));
    view.reports = {report_of(0, 110, Bytes::zero())};
    view.reports[0].datasets[0].manifest_state = ManifestState::kListing;
    EXPECT_EQ(summarize_dataset(view, moment(111)).cached_bytes, count_of(gib(1)));
    view.reports[0].datasets[0].manifest_state = ManifestState::kReady;
    EXPECT_EQ(summarize_dataset(view, moment(112)).cached_bytes, 0);
}

TEST(SummarizeDataset, BecomesUnknownWithoutReportsOfItsUsers) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1))};
    view.dataset.status = summarize_dataset(view, moment(100));
    expect_ready(summarize_dataset(view, moment(160)), ConditionStatus::kTrue, "Listed");
    const DatasetStatus status = summarize_dataset(view, moment(161));
    expect_ready(status, ConditionStatus::kUnknown, "NodesSilent");
    EXPECT_EQ(status.cached_bytes, count_of(gib(1)));
    set_running(wall(150), view.users[0]);
    view.reports.clear();
    expect_ready(summarize_dataset(view, moment(205)), ConditionStatus::kTrue, "Listed");
    set_running(std::nullopt, view.users[0]);
    expect_ready(summarize_dataset(view, moment(1000)), ConditionStatus::kTrue, "Listed");
}

TEST(SummarizeDataset, QuotesOriginErrorsAndReportsListingProgress) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, {})};
    DatasetReport& report = view.reports[0].datasets[0];
    report.manifest_state = ManifestState::kFailed;
    report.error = "NoSuchBucket: the bucket does not exist";
    DatasetStatus status = summarize_dataset(view, moment(100));
    expect_ready(status, ConditionStatus::kFalse, "OriginFailed");
    EXPECT_EQ(find_condition(status.conditions, "Ready")->message, report.error);
    report.manifest_state = ManifestState::kListing;
    report.objects_listed = 12;
    view.dataset.status = summarize_dataset(view, moment(100));
    expect_ready(view.dataset.status, ConditionStatus::kUnknown, "Listing");
    view.users.clear();
    view.reports.clear();
    expect_ready(summarize_dataset(view, moment(200)), ConditionStatus::kUnknown, "NotListed");
}

TEST(SummarizeDataset, ReportsErrorsOnItsNodes) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, {})};
    view.reports[0].datasets[0].admitting = false;
    view.reports[0].datasets[0].error = "disk full";
    const DatasetStatus status = summarize_dataset(view, moment(100));
    expect_ready(status, ConditionStatus::kTrue, "Listed");
    EXPECT_EQ(
        find_condition(status.conditions, "Ready")->message,
        "1000 samples, 4Gi. Node n1 keeps nothing new: disk full.");
}

TEST(SummarizeDataset, UsesOnlyReportsOfItsUsersOnThisDataset) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1)), report_of(1, 100, gib(2))};
    view.reports[0].training_job_uid = "a stranger";
    view.reports[1].datasets[0].dataset_uid = "another dataset";
    set_running(wall(90), view.users[0]);
    const DatasetStatus status = summarize_dataset(view, moment(101));
    expect_ready(status, ConditionStatus::kUnknown, "NotListed");
    EXPECT_EQ(status.cached_bytes, 0);
}

TEST(SummarizeDataset, DropsSweptBytes) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1)), report_of(1, 101, gib(2))};
    view.dataset.status = summarize_dataset(view, moment(102));
    ASSERT_EQ(view.dataset.status.placements.size(), 2U);
    const DatasetPlacement gone = view.dataset.status.placements[0];
    view.reports.clear();
    view.swept = {{gone.pool, gone.node}};
    const DatasetStatus status = summarize_dataset(view, moment(10'000));
    ASSERT_EQ(status.placements.size(), 1U);
    EXPECT_NE(status.placements[0].node, gone.node);
    EXPECT_EQ(status.cached_bytes, view.dataset.status.cached_bytes - gone.bytes);
}

// The last sidecar ended before the Dataset's status showed its last bytes.
TEST(SummarizeDataset, TakesThePlannersBytesWhereNoFreshReportCountsThem) {
    DatasetView view = make_dataset_view();
    view.dataset.status.total_bytes = count_of(gib(8));
    view.dataset.status.samples = 800;
    view.dataset.status.placements = {{"nvme", "n1", count_of(gib(1)), 90}};
    const std::string uid = view.dataset.meta.uid;
    view.holdings = {
        {"nvme", "n1", uid, gib(1)},
        {"nvme", "n2", uid, gib(2)},
        {"nvme", "n3", "another-uid", gib(3)},
        {"nvme", "gone", uid, gib(3)}};
    const std::vector<DatasetPlacement> expected = {
        {"nvme", "n2", count_of(gib(2)), 200}, {"nvme", "n1", count_of(gib(1)), 90}};
    EXPECT_EQ(summarize_dataset(view, moment(100)).placements, expected);
    view.swept = {{"nvme", "n2"}};
    EXPECT_EQ(summarize_dataset(view, moment(100)).placements.size(), 1U);
    view.swept.clear();
    view.reports = {report_of(1, 100, Bytes::zero())};
    view.reports[0].datasets[0].manifest_state = ManifestState::kListing;
    EXPECT_EQ(summarize_dataset(view, moment(100)).placements.size(), 1U) << "it counts them now";
    view.reports[0].datasets[0].manifest_state = ManifestState::kReady;
    EXPECT_EQ(summarize_dataset(view, moment(100)).placements.size(), 1U) << "it has none";
}

TEST(SummarizeDataset, RefusesAnInvalidSpec) {
    DatasetView view = make_dataset_view();
    view.dataset.spec.retention_after_last_use_seconds = -1;
    expect_ready(summarize_dataset(view, moment(1)), ConditionStatus::kFalse, "Invalid");
}

TEST(SummarizeDataset, SecondCallChangesNothing) {
    DatasetView view = make_dataset_view();
    view.reports = {report_of(0, 100, gib(1)), report_of(1, 101, gib(2))};
    view.dataset.status = summarize_dataset(view, moment(102));
    EXPECT_EQ(summarize_dataset(view, moment(103)), view.dataset.status);
}

TEST(SummarizeDataset, UsesFillerReportsAndDoesNotCountFillersAsJobs) {
    DatasetView view = make_dataset_view();
    view.users.push_back(make_user("filler/imagenet/ssd", "uid-imagenet", "ssd"));
    view.users.back().filler = true;
    SidecarReport report = report_of(0, 100, gib(1));
    report.training_job = "filler/imagenet/ssd";
    report.training_job_uid = "uid-imagenet";
    view.reports = {report};
    const DatasetStatus status = summarize_dataset(view, moment(101));
    EXPECT_EQ(status.jobs, 1);
    ASSERT_EQ(status.placements.size(), 1U);
    EXPECT_EQ(status.placements[0].pool, "ssd");
}

TEST(SummarizeDataset, ReportsFillersWhileGuestsRead) {
    DatasetView view = make_dataset_view();
    view.fillers = {{{"nvme", "n1"}, false, true, "The API server refuses it: exceeded quota"}};
    view.dataset.status = summarize_dataset(view, moment(100));
    const Condition* fillers = find_condition(view.dataset.status.conditions, "FillersReady");
    ASSERT_NE(fillers, nullptr);
    EXPECT_EQ(fillers->reason, "Refused");
    EXPECT_NE(fillers->message.find("exceeded quota"), std::string::npos);
    view.fillers.clear();
    const DatasetStatus after = summarize_dataset(view, moment(101));
    EXPECT_EQ(find_condition(after.conditions, "FillersReady"), nullptr);
}

}  // namespace
}  // namespace stoker::control
