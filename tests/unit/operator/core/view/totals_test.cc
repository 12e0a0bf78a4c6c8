#include "operator/core/view/totals.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(Totals, SumsCountersAndTakesBytesOnNodesFromLeaders) {
    const TrainingJobView view = make_running_view();
    SidecarReport leader = make_report(view, 0, 100);
    leader.datasets[0].resident_bytes = gib(3);
    leader.datasets[0].resident_samples = 7;
    leader.datasets[0].cache_bytes_read = gib(1);
    SidecarReport follower = make_report(view, 1, 101);
    follower.node = "n1";
    follower.datasets[0].leader = false;
    follower.datasets[0].resident_bytes = gib(99);  // ignored: it does not lead
    follower.datasets[0].miss_bytes_read = gib(2);
    const Totals sum = total_of({leader, follower}, moment(110));
    EXPECT_EQ(sum.fresh_reports, 2U);
    EXPECT_EQ(sum.newest, wall(101));
    EXPECT_EQ(sum.cache_bytes, gib(1));
    EXPECT_EQ(sum.origin_bytes, gib(2));
    const DatasetTotals& dataset = sum.datasets.at("uid-imagenet");
    EXPECT_EQ(dataset.resident_bytes(), gib(3));
    EXPECT_EQ(dataset.resident_samples, 7U);
    EXPECT_EQ(dataset.total, gib(4));
    EXPECT_EQ(dataset.state, ManifestState::kReady);
}

TEST(Totals, TakesOnlyCountersFromOldReports) {
    const TrainingJobView view = make_running_view();
    SidecarReport old = make_report(view, 0, 100);
    old.datasets[0].resident_bytes = gib(3);
    old.datasets[0].cache_bytes_read = mib(5);
    EXPECT_TRUE(is_fresh(old, moment(160)));
    EXPECT_FALSE(is_fresh(old, moment(161)));
    const Totals sum = total_of({old}, moment(161));
    EXPECT_EQ(sum.fresh_reports, 0U);
    EXPECT_EQ(sum.cache_bytes, mib(5));
    EXPECT_EQ(sum.datasets.at("uid-imagenet").resident_bytes(), Bytes::zero());
    EXPECT_EQ(sum.datasets.at("uid-imagenet").state, ManifestState::kUnknown);
    EXPECT_EQ(sum.newest, wall(100));
}

TEST(Totals, PrefersReadyThenFailedThenListing) {
    const TrainingJobView view = make_running_view();
    SidecarReport listing = make_report(view, 0, 100);
    listing.datasets[0].manifest_state = ManifestState::kListing;
    listing.datasets[0].objects_listed = 500;
    SidecarReport failed = make_report(view, 1, 100);
    failed.datasets[0].manifest_state = ManifestState::kFailed;
    failed.datasets[0].error = "AccessDenied";
    Totals sum = total_of({listing, failed}, moment(100));
    EXPECT_EQ(sum.datasets.at("uid-imagenet").state, ManifestState::kFailed);
    EXPECT_EQ(sum.datasets.at("uid-imagenet").error, "AccessDenied");
    EXPECT_EQ(sum.datasets.at("uid-imagenet").objects_listed, 500U);
    sum = total_of({listing, failed, make_report(view, 1, 100)}, moment(100));
    EXPECT_EQ(sum.datasets.at("uid-imagenet").state, ManifestState::kReady);
    EXPECT_EQ(sum.datasets.at("uid-imagenet").error, "");
}

TEST(Totals, ReportsTheNewestEpochOfAllRanks) {
    const TrainingJobView view = make_running_view();
    SidecarReport ahead = make_report(view, 0, 100);
    ahead.trainer.epoch = 3;
    ahead.trainer.epoch_samples = 500;
    ahead.trainer.epoch_position = 10;
    SidecarReport behind = make_report(view, 1, 100);
    behind.trainer.epoch = 2;
    behind.trainer.epoch_samples = 500;
    behind.trainer.epoch_position = 499;
    Totals sum = total_of({ahead, behind}, moment(100));
    EXPECT_EQ(sum.epoch, 3U);
    EXPECT_EQ(sum.epoch_position, 10U);
    EXPECT_EQ(sum.epoch_samples, 1000U);
    behind.trainer.epoch_samples = 0;
    EXPECT_EQ(total_of({ahead, behind}, moment(100)).epoch_samples, 0U) << "not known of all";
}

TEST(Totals, DoesNotDependOnTheOrderOfReports) {
    const TrainingJobView view = make_running_view();
    std::vector<SidecarReport> reports;
    for (int i = 0; i < 4; ++i) {
        reports.push_back(make_report(view, i % 2, 100 + i));
        reports.back().datasets[0].manifest_state = static_cast<ManifestState>(i);
        reports.back().datasets[0].error = "error " + std::to_string(i);
        reports.back().datasets[0].resident_bytes = gib(static_cast<std::uint64_t>(i));
    }
    const auto by_time = [](const SidecarReport& a, const SidecarReport& b) {
        return a.received_at < b.received_at;
    };
    const Totals want = total_of(reports, moment(110));
    while (std::next_permutation(reports.begin(), reports.end(), by_time)) {
        EXPECT_EQ(total_of(reports, moment(110)), want);
    }
}

TEST(Totals, NamesTheNodesThatKeepLessThanTheyAreGranted) {
    const TrainingJobView view = make_running_view();
    std::vector<SidecarReport> reports;
    for (int i = 0; i < 5; ++i) {
        reports.push_back(make_report(view, 0, 100));
        reports.back().node = "n" + std::to_string(i);
        reports.back().datasets[0].admitting = i == 0;
        reports.back().datasets[0].error = i == 0 ? "" : "disk full.";
    }
    const Totals sum = total_of(reports, moment(100));
    const DatasetTotals& dataset = sum.datasets.at("uid-imagenet");
    EXPECT_EQ(dataset.error, "") << "that is not the origin's";
    EXPECT_EQ(
        tell_troubles(dataset),
        "Node n1 keeps nothing new: disk full. Node n2 keeps nothing new: disk full. Node n3 keeps "
        "nothing new: disk full. The same on 1 more.");
}

TEST(Totals, NamesTheNodeWhoseWindowIsTooSmallAndTheFix) {
    const TrainingJobView view = make_running_view();
    SidecarReport report = make_report(view, 0, 100);
    report.datasets[0].window_needed_bytes = gib(3) - mib(5);
    report.datasets[0].window_lacks_bytes = gib(1) - mib(63);
    EXPECT_EQ(
        tell_troubles(total_of({report}, moment(100)).datasets.at("uid-imagenet")),
        "Node n1 has WindowTooSmall: its windowed jobs need 3Gi for samples that loaders have "
        "drawn "
        "and not read, 1Gi more than grant and window, and samples are fetched again: lower "
        "num_workers or prefetch_factor, or raise the job's cache.");
    report.datasets[0].window_lacks_bytes = Bytes::zero();
    EXPECT_EQ(tell_troubles(total_of({report}, moment(100)).datasets.at("uid-imagenet")), "");
}

TEST(HitPercent, RoundsDownAndIsEmptyBeforeTheFirstRead) {
    EXPECT_EQ(hit_percent({}, {}), std::nullopt);
    EXPECT_EQ(hit_percent({}, Bytes{5}), 0);
    EXPECT_EQ(hit_percent(Bytes{2}, Bytes{1}), 66);
    EXPECT_EQ(hit_percent(Bytes{5}, {}), 100);
    EXPECT_EQ(hit_percent(gib(1ULL << 30U), gib(1ULL << 30U)), 50) << "an exabyte each";
    EXPECT_EQ(ratio_text(7), "0.07");
    EXPECT_EQ(ratio_text(100), "1.00");
}

TEST(CountOf, ClampsByteCountsToTheLargestInt64) {
    EXPECT_EQ(count_of(Bytes{5}), 5);
    EXPECT_EQ(count_of(Bytes::unlimited()), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace stoker::control
