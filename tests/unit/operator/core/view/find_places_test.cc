#include <algorithm>

#include <gtest/gtest.h>

#include "operator/core/view/grant_book.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

ObservedResidency place(const ClusterView& cluster, const std::string& node, std::int64_t second) {
    const std::vector<ObservedResidency> places = find_places(cluster, moment(second));
    const auto found =
        std::find_if(places.begin(), places.end(), [&](const ObservedResidency& word) {
            return word.node == node;
        });
    return found == places.end() ? ObservedResidency{} : *found;
}

TEST(FindPlaces, AreNodesWithPodsOfJobs) {
    ClusterView cluster = make_cluster();
    const std::vector<ObservedResidency> places = find_places(cluster, moment(1));
    ASSERT_EQ(places.size(), 2U);
    ObservedResidency expected;
    expected.pool = "nvme";
    expected.node = "n1";
    expected.dataset_uid = "uid-imagenet";
    expected.ns = "team";
    expected.live = true;
    EXPECT_EQ(places[0], expected);
    cluster.jobs[0].pods[0].edit().phase = PodPhase::kSucceeded;
    EXPECT_FALSE(place(cluster, "n1", 1).live);
    cluster.nodes = {make_node("n2")};
    EXPECT_EQ(find_places(cluster, moment(1)).size(), 1U) << "a node that is gone has no bytes";
}

TEST(FindPlaces, BelongToTheNamespaceOfTheirDataset) {
    ClusterView cluster = make_cluster();
    cluster.jobs[0].datasets.edit().datasets[0].ns = "data";
    cluster.datasets[0].meta.ns = "data";
    EXPECT_EQ(place(cluster, "n1", 1).ns, "data");
    cluster.datasets.clear();
    EXPECT_EQ(place(cluster, "n1", 1).ns, "data") << "the namespace that the job knows";
}

TEST(FindPlaces, UseFreshReportsBeforeTheStatus) {
    ClusterView cluster = make_cluster();
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    cluster.reports[0].datasets[0].resident_bytes = gib(2);
    cluster.reports[0].datasets[0].granted_bytes = gib(3);
    cluster.datasets[0].status.placements = {
        {"nvme", "n1", 999, 1}, {"nvme", "n2", 777, 1}, {"nvme", "gone", 5, 1}};
    const ObservedResidency fresh = place(cluster, "n1", 101);
    EXPECT_EQ(fresh.resident, gib(2));
    EXPECT_EQ(fresh.granted, gib(3));
    EXPECT_TRUE(fresh.reached);
    const ObservedResidency silent = place(cluster, "n2", 101);
    EXPECT_EQ(silent.resident, Bytes{777});
    EXPECT_FALSE(silent.granted);
    EXPECT_FALSE(silent.reached);
    const ObservedResidency stale = place(cluster, "n1", 1000);
    EXPECT_EQ(stale.resident, Bytes{999});
    EXPECT_FALSE(stale.granted);
    EXPECT_EQ(place(cluster, "gone", 101), ObservedResidency{});
}

TEST(FindPlaces, TellsWhetherAReportedLeaderIsAttached) {
    ClusterView cluster = make_cluster();
    cluster.reports = {
        make_report(make_running_view(), 0, 100), make_report(make_running_view(), 0, 101)};
    EXPECT_TRUE(place(cluster, "n1", 102).leader_attached);
    cluster.reports[0].datasets[0].leader = false;
    cluster.reports[1].attached = false;
    const ObservedResidency word = place(cluster, "n1", 102);
    EXPECT_TRUE(word.reached);
    EXPECT_FALSE(word.leader_attached);
}

TEST(FindPlaces, UseTheNewerOfTwoLeadersReports) {
    ClusterView cluster = make_cluster();
    SidecarReport old = make_report(make_running_view(), 0, 100);
    old.datasets[0].granted_bytes = gib(9);
    SidecarReport young = make_report(make_running_view(), 0, 110);
    young.datasets[0].granted_bytes = gib(3);
    cluster.reports = {old, young};
    EXPECT_EQ(place(cluster, "n1", 111).granted, gib(3));
    std::swap(cluster.reports[0], cluster.reports[1]);
    EXPECT_EQ(place(cluster, "n1", 111).granted, gib(3));
}

TEST(FindPlaces, AttachedLeadersResidentBytesReplaceThoseOfAnEndedSidecar) {
    ClusterView cluster = make_cluster();
    SidecarReport ended = make_report(make_running_view(), 0, 100);
    ended.attached = false;
    ended.datasets[0].resident_bytes = gib(9);
    SidecarReport leader = make_report(make_running_view(), 0, 110);
    leader.datasets[0].resident_bytes = gib(3);
    cluster.reports = {ended, leader};
    EXPECT_EQ(place(cluster, "n1", 111).resident, gib(3)) << "the rest has been evicted";
    std::swap(cluster.reports[0], cluster.reports[1]);
    EXPECT_EQ(place(cluster, "n1", 111).resident, gib(3));
    cluster.reports[1].received_at += std::chrono::seconds{11};
    EXPECT_EQ(place(cluster, "n1", 121).resident, gib(9)) << "the attached one may be dead";
    cluster.reports[0].attached = false;
    cluster.reports[1].received_at -= std::chrono::seconds{11};
    EXPECT_EQ(place(cluster, "n1", 111).resident, gib(9)) << "no leader is attached";
}

TEST(FindPlaces, AllocatedBytesThatNoReportCoversArePromised) {
    ClusterView cluster = make_cluster();
    JobDatasetStatus status;
    status.name = "train";
    status.allocated_bytes = static_cast<std::int64_t>(gib(8).count());
    cluster.jobs[0].job.edit().status.datasets = {status};
    EXPECT_EQ(place(cluster, "n1", 101).promised, gib(8));
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    cluster.reports[0].datasets[0].granted_bytes = gib(3);
    EXPECT_EQ(place(cluster, "n2", 101).promised, gib(5));
}

// Two jobs read the dataset, each on its own node: each job's reports count only for itself.
TEST(FindPlaces, AllocatedBytesArePromisedPerJob) {
    ClusterView cluster = make_cluster();
    const auto status_of = [](Bytes bytes) {
        JobDatasetStatus status;
        status.name = "train";
        status.allocated_bytes = static_cast<std::int64_t>(bytes.count());
        return status;
    };
    JobUse other = cluster.jobs[0];
    other.job.edit().meta.name = "other";
    other.job.edit().meta.uid = "uid-other";
    std::erase_if(cluster.jobs[0].pods, [](const Pod& pod) { return pod.node_name != "n1"; });
    std::erase_if(other.pods, [](const Pod& pod) { return pod.node_name != "n2"; });
    cluster.jobs[0].job.edit().status.datasets = {status_of(gib(2))};
    other.job.edit().status.datasets = {status_of(gib(9))};
    cluster.jobs.push_back(other);
    SidecarReport spoke = make_report(make_running_view(), 1, 100);
    spoke.training_job = "other";
    spoke.training_job_uid = "uid-other";
    spoke.datasets[0].granted_bytes = gib(9);
    cluster.reports = {spoke};
    EXPECT_EQ(place(cluster, "n1", 101).promised, gib(2));
}

TEST(FindPlaces, IgnoreAnUnlimitedGrantInPromises) {
    ClusterView cluster = make_cluster();
    JobDatasetStatus status;
    status.name = "train";
    status.allocated_bytes = static_cast<std::int64_t>(gib(8).count());
    cluster.jobs[0].job.edit().status.datasets = {status};
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    cluster.reports[0].datasets[0].granted_bytes = Bytes::unlimited();
    EXPECT_EQ(place(cluster, "n2", 101).promised, gib(8));
}

// While the leader lists the origin, its directory is not open, and it reports no bytes.
TEST(FindPlaces, KeepTheStatusUntilTheLeaderHasCounted) {
    ClusterView cluster = make_cluster();
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    cluster.datasets[0].status.placements = {{"nvme", "n1", 999, 1}};
    for (const ManifestState state : {ManifestState::kListing, ManifestState::kFailed}) {
        cluster.reports[0].datasets[0].manifest_state = state;
        EXPECT_EQ(place(cluster, "n1", 101).resident, Bytes{999});
        EXPECT_TRUE(place(cluster, "n1", 101).opening);
        EXPECT_TRUE(place(cluster, "n1", 101).granted);
    }
    cluster.reports[0].datasets[0].manifest_state = ManifestState::kReady;
    EXPECT_EQ(place(cluster, "n1", 101).resident, Bytes::zero());
    EXPECT_FALSE(place(cluster, "n1", 101).opening);
}

}  // namespace
}  // namespace stoker::control
