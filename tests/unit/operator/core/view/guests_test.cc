#include "operator/core/view/guests.h"

#include <gtest/gtest.h>

#include "operator/core/view/grant_book.h"
#include "operator/core/view/measured_demand.h"
#include "operator/core/view/over_quota_holders.h"
#include "tests/unit/operator/core/make_filler.h"

namespace stoker::control {
namespace {

// A guest's two pods on n1 and n2, and a filler on n1.
ClusterView make_shared_cluster(bool with_filler = true) {
    ClusterView cluster = make_cluster();
    cluster.datasets = {make_shared_dataset()};
    cluster.jobs = {make_guest()};
    if (with_filler) {
        cluster.jobs.push_back(make_filler_use(cluster.datasets[0]));
    }
    return cluster;
}

SidecarReport false_report() {
    SidecarReport report = make_report(make_running_view(), 0, 100);
    DatasetReport& told = report.datasets[0];
    told.resident_bytes = gib(9);
    told.resident_samples = 9;
    told.granted_bytes = gib(9);
    told.window_bytes = gib(9);
    told.sketches = {{"uid-resnet", 1, {1, 2}, 1}};
    told.disk_limit = DiskLimit{};
    told.window_needed_bytes = told.window_lacks_bytes = gib(9);
    told.error = "words";
    told.cache_bytes_read = gib(1);
    return report;
}

ObservedResidency place(const ClusterView& cluster, const std::string& node) {
    for (const ObservedResidency& word : find_places(cluster, moment(101))) {
        if (word.node == node) {
            return word;
        }
    }
    return {};
}

TEST(Guests, ClaimsOfGuestsAboutTheDirectoryAreIgnored) {
    SidecarReport report = false_report();
    drop_directory_claims(make_guest(), report);
    const DatasetReport& told = report.datasets[0];
    EXPECT_FALSE(told.leader);
    EXPECT_EQ(told.resident_bytes, Bytes::zero());
    EXPECT_EQ(told.resident_samples, 0U);
    EXPECT_EQ(told.granted_bytes, Bytes::zero());
    EXPECT_EQ(told.window_bytes, Bytes::zero());
    EXPECT_TRUE(told.sketches.empty());
    EXPECT_FALSE(told.disk_limit);
    EXPECT_EQ(told.window_lacks_bytes, Bytes::zero());
    EXPECT_EQ(told.error, "words") << "for the guest's own status";
    EXPECT_EQ(told.manifest_state, ManifestState::kReady);
    EXPECT_EQ(told.cache_bytes_read, gib(1)) << "bytes that the guest's own job read";
    SidecarReport own = false_report();
    drop_directory_claims(use_of(make_running_view()), own);
    EXPECT_EQ(own, false_report());
}

TEST(Guests, ClaimsOfGuestsAboutTheOriginAreIgnored) {
    SidecarReport report = false_report();
    drop_listing_claims(make_guest(), report);
    const DatasetReport& told = report.datasets[0];
    EXPECT_EQ(told.manifest_state, ManifestState::kUnknown);
    EXPECT_EQ(told.samples, 0U);
    EXPECT_EQ(told.total_bytes, Bytes::zero());
    EXPECT_EQ(told.error, "");
    EXPECT_FALSE(told.leader);
}

TEST(Guests, AreNamedWithTheirNamespace) {
    EXPECT_EQ(job_key_at(make_guest(), make_guest().datasets->datasets[0]), "team/uid-resnet");
    const JobUse own = use_of(make_running_view());
    EXPECT_EQ(job_key_at(own, own.datasets->datasets[0]), "uid-resnet");
}

TEST(Guests, NeverHoldGrants) {
    ClusterView cluster = make_shared_cluster(false);
    cluster.reports = {false_report()};
    const ObservedResidency word = place(cluster, "n1");
    EXPECT_EQ(word.dataset_uid, "uid-imagenet");
    EXPECT_EQ(word.ns, "data");
    EXPECT_FALSE(word.live);
    EXPECT_FALSE(word.reached);
    EXPECT_FALSE(word.granted);
    EXPECT_EQ(word.resident, Bytes::zero());
}

TEST(Guests, AreServedByAFillerThatHoldsTheGrant) {
    ClusterView cluster = make_shared_cluster();
    EXPECT_TRUE(place(cluster, "n1").live);
    EXPECT_FALSE(place(cluster, "n1").reached);
    cluster.reports = {make_filler_report(cluster.datasets[0], 100), false_report()};
    cluster.reports[0].datasets[0].resident_bytes = gib(2);
    cluster.reports[0].datasets[0].granted_bytes = gib(3);
    const ObservedResidency word = place(cluster, "n1");
    EXPECT_TRUE(word.reached);
    EXPECT_EQ(word.resident, gib(2));
    EXPECT_EQ(word.granted, gib(3));
    EXPECT_FALSE(place(cluster, "n2").live) << "no filler there";
}

TEST(Guests, FillersOfSeveralPoolsAreDistinct) {
    ClusterView cluster = make_shared_cluster();
    cluster.pools.push_back(make_pool("ssd"));
    JobUse other = make_filler_use(cluster.datasets[0]);
    other.pool.name = "ssd";
    other.job.edit().meta.name = filler_training_job(cluster.datasets[0], "ssd");
    other.pods[0].edit().node_name = "n2";
    cluster.jobs.push_back(other);
    cluster.reports = {make_filler_report(cluster.datasets[0], 100)};
    for (const ObservedResidency& word : find_places(cluster, moment(101))) {
        EXPECT_EQ(word.reached, word.pool == "nvme" && word.node == "n1")
            << word.pool << " " << word.node;
    }
}

TEST(Guests, FillersHaveNoDemand) {
    const ClusterView cluster = make_shared_cluster();
    EXPECT_FALSE(cluster.jobs[1].is_active());
    const AllocationView view = view_allocation(cluster, moment(100));
    ASSERT_EQ(view.demands.size(), 1U);
    EXPECT_EQ(view.demands[0].job, (ObjectKey{"team", "resnet"}));
}

TEST(Guests, NodeWithAFillerIsPlanned) {
    ClusterView cluster = make_shared_cluster();
    cluster.jobs[0].pods.clear();
    cluster.programs.listening_since = TimePoint{};
    const auto nodes = planned_nodes(cluster, moment(10'000).steady);
    ASSERT_EQ(nodes.size(), 1U);
    EXPECT_EQ(nodes[0].node, "n1");
}

TEST(Guests, WeightsNameTheGuestJobWithItsNamespace) {
    ClusterView cluster = make_shared_cluster();
    JobUse own = use_of(make_running_view());
    own.job.edit().meta.ns = "data";
    own.job.edit().meta.uid = "uid-own";
    own.datasets.edit().datasets[0].ns = "data";
    cluster.jobs.push_back(own);
    JobProfile profile;
    profile.verdict = ProfileVerdict::kDataBound;
    profile.ingest_rate = 1000;
    cluster.profiles[{"team", "resnet"}] = profile;
    cluster.profiles[{"data", "resnet"}] = profile;
    std::vector<Grant> grants(1);
    grants[0].node = "n1";
    grants[0].dataset_uid = "uid-imagenet";
    weigh_jobs(cluster, grants);
    ASSERT_EQ(grants[0].weights.size(), 2U);
    EXPECT_EQ(grants[0].weights[0].job_uid, "team/uid-resnet");
    EXPECT_EQ(grants[0].weights[1].job_uid, "uid-own");
}

TEST(Guests, SketchesNameTheGuestJobWithItsNamespace) {
    const JobUse guest = make_guest();
    std::vector<SidecarReport> reports{make_filler_report(make_shared_dataset(), 100)};
    const auto sketch = [&] {
        return measured_sketch(guest, "uid-imagenet", ReportIndex{reports}, moment(101));
    };
    reports[0].datasets[0].sketches = {{"team/uid-resnet", 1, {3, 1}, 1}};
    EXPECT_FALSE(sketch().empty());
    reports[0].datasets[0].sketches[0].job_uid = "uid-resnet";
    EXPECT_TRUE(sketch().empty());
}

TEST(Guests, AreNeverAskedToGiveBytesBack) {
    const Reclaim reclaim{"nvme", "n1", "uid-imagenet", gib(5), gib(2), 30, "data"};
    EXPECT_TRUE(find_over_quota_holders(make_shared_cluster(false), {reclaim}).empty());
    const std::vector<OverQuotaHolder> holders =
        find_over_quota_holders(make_shared_cluster(), {reclaim});
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].job, (ObjectKey{"data", "filler/imagenet/nvme"}));
}

TEST(Guests, ClaimsOfGuestsAboutPeersAreIgnored) {
    SidecarReport report = false_report();
    DatasetReport& told = report.datasets[0];
    told.peer_address = "10.0.0.1:7331";
    told.peer_generation = 7;
    told.peer_bytes_read = gib(1);
    told.peer_samples = told.peer_hedges = told.peer_failures = told.peer_connect_failures = 100;
    told.peer_group_version = 9;
    drop_directory_claims(make_guest(), report);
    EXPECT_EQ(told.peer_address, "");
    EXPECT_EQ(told.peer_generation, 0U);
    EXPECT_EQ(told.peer_bytes_read, Bytes::zero());
    EXPECT_EQ(told.peer_samples, 0U);
    EXPECT_EQ(told.peer_hedges, 0U);
    EXPECT_EQ(told.peer_failures, 0U) << "a guest's failures would make PeersReachable False";
    EXPECT_EQ(told.peer_connect_failures, 0U);
    EXPECT_EQ(told.peer_group_version, 0U);
}

}  // namespace
}  // namespace stoker::control
