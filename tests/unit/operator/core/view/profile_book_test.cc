#include "operator/core/view/profile_book.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

constexpr std::int64_t kStep = 10;  // seconds, one window of the profiler
const ObjectKey kJob{"team", "resnet"};

// A job of two ranks on two nodes; it reads 40 MB/s and computes for a quarter of its time.
struct Bench {
    TrainingJobView view = make_running_view();
    ClusterView cluster;
    ProfileBook book{1000};
    std::int64_t second = 0;

    Bench() { cluster.jobs = {use_of(view)}; }

    void add(std::int64_t rank) {
        SidecarReport report = make_report(view, rank, second);
        const auto steps = static_cast<std::uint64_t>(second / kStep);
        report.trainer.bytes = Bytes{steps * 200'000'000};
        report.trainer.samples = steps * 2000;
        report.trainer.compute = std::chrono::milliseconds{2500} * steps;
        report.trainer.wait = std::chrono::milliseconds{7500} * steps;
        report.datasets[0].origin_bytes_read = report.trainer.bytes;
        report.datasets[0].origin_requests = steps * 2000;
        cluster.reports.push_back(report);
    }

    void step(const AllocationPlan& plan = {}) {
        second += kStep;
        cluster.reports.clear();
        add(0);
        add(1);
        book.update(cluster, plan, moment(second));
    }

    void run(int windows, const AllocationPlan& plan = {}) {
        for (int i = 0; i < windows; ++i) {
            step(plan);
        }
    }
};

TEST(ProfileBook, ProfilesARunningJobFromItsReports) {
    Bench bench;
    bench.run(3);
    EXPECT_TRUE(bench.book.profiles().empty());
    bench.run(5);
    const auto profiles = bench.book.profiles();
    ASSERT_TRUE(profiles.contains(kJob));
    const JobProfile& profile = profiles.at(kJob);
    EXPECT_NEAR(profile.read_rate, 40e6, 1);
    EXPECT_NEAR(profile.ingest_rate, 160e6, 1);
    EXPECT_NEAR(profile.origin_rate, 40e6, 1);
    EXPECT_EQ(profile.verdict, ProfileVerdict::kDataBound);
}

// A grant's bandwidth limit counts as the origin's rate. Otherwise a job that is limited from its
// first batch on would never be DataBound: it never shows what the origin could give.
TEST(ProfileBook, DetectsWaitingUnderABandwidthLimit) {
    Bench bench;
    AllocationPlan plan;
    for (const Pod& pod : bench.cluster.jobs[0].pods) {
        Grant grant;
        grant.node = pod.node_name;
        grant.dataset_uid = bench.view.datasets.datasets.at(0).uid;
        grant.origin_bytes_per_second = 20'000'000;
        plan.grants.push_back(grant);
    }
    ASSERT_EQ(plan.grants.size(), 2U);
    bench.run(6, plan);
    ASSERT_TRUE(bench.book.profiles().contains(kJob));
    EXPECT_EQ(bench.book.profiles().at(kJob).verdict, ProfileVerdict::kDataBound);
    EXPECT_NEAR(bench.book.profiles().at(kJob).origin_rate, 40e6, 1);
}

TEST(ProfileBook, DropsEndedJobsAndResetsNewAttempts) {
    Bench bench;
    bench.run(6);
    ASSERT_TRUE(bench.book.profiles().contains(kJob));
    bench.cluster.jobs[0].job.edit().status.attempt = 2;
    bench.step();
    EXPECT_TRUE(bench.book.profiles().empty()) << "the reports are of the attempt before";
    bench.cluster.jobs[0].job.edit().status.attempt = 1;
    bench.run(6);
    ASSERT_TRUE(bench.book.profiles().contains(kJob));
    set_condition(
        bench.cluster.jobs[0].job.edit().status.conditions,
        {"Complete", ConditionStatus::kTrue, 1, wall(1), "Complete", ""});
    bench.step();
    EXPECT_TRUE(bench.book.profiles().empty());
}

TEST(ProfileBook, UsesFetchRatesOfAnotherJobsLeader) {
    Bench bench;
    for (int i = 0; i < 8; ++i) {
        bench.second += kStep;
        bench.cluster.reports.clear();
        for (std::int64_t rank = 0; rank < 2; ++rank) {
            bench.add(rank);
            SidecarReport leader = bench.cluster.reports.back();
            leader.pod = "other-a1-" + std::to_string(rank);
            leader.training_job_uid = "uid-other";
            leader.trainer = {};
            bench.cluster.reports.back().datasets[0].leader = false;
            bench.cluster.reports.back().datasets[0].origin_bytes_read = Bytes{};
            bench.cluster.reports.push_back(leader);
        }
        bench.book.update(bench.cluster, {}, moment(bench.second));
    }
    ASSERT_TRUE(bench.book.profiles().contains(kJob));
    EXPECT_NEAR(bench.book.profiles().at(kJob).origin_rate, 40e6, 1);
}

TEST(ProfileBook, IgnoresOldReports) {
    Bench bench;
    bench.run(2);
    for (int i = 0; i < 12; ++i) {
        bench.second += 61;  // the reports stay
        bench.book.update(bench.cluster, {}, moment(bench.second));
    }
    EXPECT_TRUE(bench.book.profiles().empty());
}

TEST(ProfileBook, RequestsAProbeIfTheSpecAsksForIt) {
    Bench bench;
    bench.run(6);
    EXPECT_TRUE(bench.book.probes().empty());
    bench.cluster.jobs[0].job.edit().spec.cache.profiling = ProfilingSpec{"Measured", 20, 60};
    bench.step();
    ASSERT_TRUE(bench.book.probes().contains(kJob));
    const Probe probe = bench.book.probes().at(kJob);
    EXPECT_EQ(probe.batches, 20U);
    EXPECT_GE(probe.id, 1000U);
    bench.second += kStep;
    bench.cluster.reports.clear();
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        bench.add(rank);
        bench.cluster.reports.back().trainer.probe = {
            probe.id, {20, std::chrono::seconds{9}, gib(1)}, {20, std::chrono::seconds{3}, gib(1)}};
    }
    bench.book.update(bench.cluster, {}, moment(bench.second));
    EXPECT_TRUE(bench.book.probes().empty());
    EXPECT_EQ(bench.book.profiles().at(kJob).method, ProfileMethod::kMeasured);
    EXPECT_DOUBLE_EQ(bench.book.profiles().at(kJob).measured_benefit, 3);
}

TEST(ProfileBook, CountsOutOfRangeReports) {
    Bench bench;
    bench.run(2);
    bench.second += kStep;
    bench.cluster.reports.clear();
    bench.add(0);
    bench.add(1);
    bench.cluster.reports[0].trainer.bytes = Bytes{1ULL << 55U};
    bench.book.update(bench.cluster, {}, moment(bench.second));
    EXPECT_EQ(bench.book.refused(), 1U);
}

}  // namespace
}  // namespace stoker::control
