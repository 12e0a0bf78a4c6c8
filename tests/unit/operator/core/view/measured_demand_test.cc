#include "operator/core/view/measured_demand.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// A report of the leader on the node of `rank`, with the measured `masses` of the job's reads, from
// the most important samples to the least important.
SidecarReport sketching(std::int64_t rank, std::vector<float> masses, std::int64_t second = 100) {
    const TrainingJobView view = make_running_view();
    SidecarReport report = make_report(view, rank, second);
    report.datasets[0].sketches = {{view.job.meta.uid, 1, std::move(masses), 0.5}};
    return report;
}

SidecarReport at_position(std::int64_t rank, std::uint64_t epoch, std::uint64_t position) {
    SidecarReport report = make_report(make_running_view(), rank, 100);
    report.trainer.epoch = epoch;
    report.trainer.epoch_samples = 200;
    report.trainer.epoch_position = position;
    return report;
}

std::vector<float> sketch_of(const std::vector<SidecarReport>& reports, std::int64_t now = 101) {
    return measured_sketch(
        use_of(make_running_view()), "uid-imagenet", ReportIndex{reports}, moment(now));
}

double mass(const std::vector<float>& sketch, double from, double to) {
    const auto place = [&](double share) {
        return sketch.begin() +
               static_cast<std::ptrdiff_t>(std::lround(share * static_cast<double>(sketch.size())));
    };
    return std::accumulate(place(from), place(to), 0.0) /
           std::accumulate(sketch.begin(), sketch.end(), 0.0);
}

TEST(MeasuredSketch, IsTheMeanOfNormalizedSketches) {
    const std::vector<float> sketch = sketch_of({sketching(0, {3, 1}), sketching(1, {500, 500})});
    ASSERT_EQ(sketch.size(), kRankSketchSizeMax);
    EXPECT_NEAR(mass(sketch, 0, 0.5), (0.75 + 0.5) / 2, 1e-6);
    const std::vector<float> other = sketch_of({sketching(1, {500, 500}), sketching(0, {3, 1})});
    EXPECT_EQ(sketch, other) << "the order of the reports does not matter";
}

TEST(MeasuredSketch, ResamplesSketchesOfAnyLength) {
    const std::vector<float> sketch = sketch_of({sketching(0, {2, 1, 1})});
    EXPECT_NEAR(mass(sketch, 0, 1.0 / 3), 0.5, 0.002);
    EXPECT_NEAR(mass(sketch, 2.0 / 3, 1), 0.25, 0.002);
}

TEST(MeasuredSketch, UsesTheNewerOfTwoLeadersSketches) {
    SidecarReport newer = sketching(0, {1, 0});
    newer.datasets[0].sketches[0].revision = 2;
    newer.pod += "-other";
    EXPECT_NEAR(mass(sketch_of({sketching(0, {1, 1}), newer}), 0, 0.5), 1, 1e-6);
}

TEST(MeasuredSketch, IsEmptyWithoutReports) {
    EXPECT_TRUE(sketch_of({}).empty());
    EXPECT_TRUE(sketch_of({sketching(0, {})}).empty());
    EXPECT_TRUE(sketch_of({sketching(0, {0, 0})}).empty()) << "nothing was read";
    EXPECT_TRUE(sketch_of({sketching(0, {2, 1})}, 1000).empty()) << "silent for long";
    SidecarReport other_job = sketching(0, {2, 1});
    other_job.datasets[0].sketches[0].job_uid = "other";
    SidecarReport other_dataset = sketching(0, {2, 1});
    other_dataset.datasets[0].dataset_uid = "other";
    SidecarReport other_node = sketching(0, {2, 1});
    other_node.node = "n9";
    EXPECT_TRUE(sketch_of({other_job, other_dataset, other_node}).empty());
}

TEST(LastEpochProgress, IsThatOfTheSlowestRank) {
    JobUse use = use_of(make_running_view());
    use.job.edit().spec.trainer.epochs = 3;
    const auto progress = [&](const std::vector<SidecarReport>& reports, std::int64_t now = 101) {
        return last_epoch_progress(use, ReportIndex{reports}, moment(now));
    };
    EXPECT_EQ(progress({at_position(0, 2, 150), at_position(1, 2, 50)}), 0.25);
    EXPECT_EQ(progress({at_position(0, 2, 150), at_position(1, 1, 199)}), std::nullopt);
    EXPECT_EQ(progress({at_position(0, 2, 150)}), std::nullopt) << "a rank is missing";
    EXPECT_EQ(progress({at_position(0, 2, 150), at_position(1, 2, 50)}, 1000), std::nullopt);
    use.job.edit().spec.trainer.epochs = 0;
    EXPECT_EQ(progress({at_position(0, 2, 150), at_position(1, 2, 50)}), std::nullopt)
        << "the spec does not say how many epochs there are";
}

TEST(ViewAllocation, MeasuredReadsReplaceTheFormulaOfImportance) {
    ClusterView cluster = make_cluster();
    cluster.reports = {sketching(0, {3, 1}), sketching(1, {3, 1})};
    const auto access = [&] {
        return view_allocation(cluster, moment(101)).demands.at(0).datasets.at(0).access;
    };
    EXPECT_EQ(access().kind, AccessKind::kExact) << "the job does not read by importance";
    cluster.jobs[0].job.edit().spec.datasets.at(0).contract = Contract::kImportance;
    EXPECT_EQ(access().kind, AccessKind::kMeasured);
    EXPECT_EQ(access().sketch.size(), kRankSketchSizeMax);
    cluster.reports.clear();
    EXPECT_EQ(access().kind, AccessKind::kImportance);
}

// A second job on the same dataset and nodes.
JobUse other_use() {
    JobUse other = use_of(make_running_view());
    other.job.edit().meta.name = "vit";
    other.job.edit().meta.uid = "uid-vit";
    return other;
}

Grant grant_of(const std::string& node, const std::string& uid) {
    Grant grant;
    grant.node = node;
    grant.dataset_uid = uid;
    return grant;
}

TEST(WeighJobs, WeighsEachReader) {
    ClusterView cluster = make_cluster();
    cluster.jobs.push_back(other_use());
    const ObjectKey resnet = cluster.jobs[0].job->meta.key();
    JobProfile profile;
    profile.ingest_rate = 600;
    profile.verdict = ProfileVerdict::kDataBound;
    cluster.profiles[resnet] = profile;
    std::vector<Grant> grants{grant_of("n1", "uid-imagenet"), grant_of("n2", "uid-other")};
    weigh_jobs(cluster, grants);
    const std::string uid = cluster.jobs[0].job->meta.uid;
    const auto weights = [&](double resnet_weight, double vit_weight) {
        return std::vector<JobWeight>{{uid, resnet_weight}, {"uid-vit", vit_weight}};
    };
    EXPECT_EQ(grants[0].weights, weights(300, 300)) << "half on each node; vit has no verdict";
    EXPECT_TRUE(grants[1].weights.empty());
    cluster.jobs[0].job.edit().spec.cache.weight = 5;
    weigh_jobs(cluster, grants);
    EXPECT_EQ(grants[0].weights, weights(1500, 300)) << "five times as much";
    cluster.jobs[1].job.edit().spec.cache.weight = 2;
    weigh_jobs(cluster, grants);
    EXPECT_EQ(grants[0].weights, weights(1500, 600)) << "also without a verdict";
    cluster.jobs[0].job.edit().spec.cache.weight = 1;
    profile.verdict = ProfileVerdict::kComputeBound;
    cluster.profiles[{resnet.ns, "vit"}] = profile;
    weigh_jobs(cluster, grants);
    ASSERT_EQ(grants[0].weights.size(), 2U);
    for (const JobWeight& weight : grants[0].weights) {
        EXPECT_EQ(weight.weight, weight.job_uid == "uid-vit" ? 0 : 300);
    }
}

TEST(WeighJobs, UsesSpecWeightsForUnprofiledJobs) {
    ClusterView cluster = make_cluster();
    cluster.jobs.push_back(other_use());
    cluster.jobs[0].job.edit().spec.cache.weight = 5;
    std::vector<Grant> grants{grant_of("n1", "uid-imagenet")};
    weigh_jobs(cluster, grants);
    const std::string uid = cluster.jobs[0].job->meta.uid;
    EXPECT_EQ(grants[0].weights, (std::vector<JobWeight>{{uid, 5}, {"uid-vit", 1}}));
}

TEST(WeighJobs, AddsNoWeightForASingleReader) {
    ClusterView cluster = make_cluster();
    JobProfile profile;
    profile.ingest_rate = 600;
    profile.verdict = ProfileVerdict::kDataBound;
    cluster.profiles[cluster.jobs[0].job->meta.key()] = profile;
    cluster.jobs.push_back(other_use());
    cluster.jobs.back().job.edit().spec.suspend = true;
    std::vector<Grant> grants{grant_of("n1", "uid-imagenet")};
    weigh_jobs(cluster, grants);
    EXPECT_TRUE(grants[0].weights.empty());
}

}  // namespace
}  // namespace stoker::control
