#include "operator/core/view/warmups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/saturating.h"
#include "tests/unit/operator/core/make_filler.h"
#include "tests/unit/operator/core/make_warmup.h"

namespace stoker::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kUid = "uid-imagenet";

void end(DatasetWarmup& warmup, std::string_view type, std::int64_t second) {
    Condition& condition = warmup.status.conditions.emplace_back();
    condition.type = type;
    condition.status = ConditionStatus::kTrue;
    warmup.status.completion_time = wall(second);
}

TEST(Warmups, FillWhileTheyHaveNodesAndAreNotStopped) {
    DatasetWarmup warmup = make_warmup();
    EXPECT_TRUE(is_filling(warmup));
    warmup.spec.suspend = true;
    EXPECT_FALSE(is_filling(warmup));
    warmup = make_warmup();
    warmup.meta.deleting_since = wall(1);
    EXPECT_FALSE(is_filling(warmup));
    warmup = make_warmup();
    warmup.status.nodes.clear();
    EXPECT_FALSE(is_filling(warmup));
    warmup = make_warmup();
    end(warmup, kWarmupFailed, 1);
    EXPECT_FALSE(is_filling(warmup));
}

TEST(Warmups, KeepFillersForTheirTtl) {
    DatasetWarmup warmup = make_warmup();
    end(warmup, kWarmupComplete, 100);
    EXPECT_FALSE(needs_fillers(warmup, wall(100)));
    warmup.spec.ttl_seconds_after_finished = 60;
    EXPECT_TRUE(needs_fillers(warmup, wall(159)));
    EXPECT_FALSE(needs_fillers(warmup, wall(160)));
}

TEST(Warmups, ProgressChangesNothingThatTheWarmupAsksFor) {
    const DatasetWarmup before = make_warmup();
    DatasetWarmup after = before;
    after.status.bytes_warmed = after.status.nodes[0].bytes_warmed = 7;
    after.status.nodes[0].message = "disk full";
    EXPECT_TRUE(asks_the_same(before, after));
    after.status.nodes[0].state = kWarmupNodeDone;
    EXPECT_FALSE(asks_the_same(before, after));
    after = before;
    after.status.nodes[0].silent_since = wall(1);
    EXPECT_FALSE(asks_the_same(before, after)) << "the node's filler may hang";
    after = before;
    after.spec.rate_limit = Bytes{1};
    EXPECT_FALSE(asks_the_same(before, after));
    after = before;
    after.meta.deleting_since = wall(1);
    EXPECT_FALSE(asks_the_same(before, after));
    after = before;
    end(after, kWarmupFailed, 1);
    EXPECT_FALSE(asks_the_same(before, after));
    after = before;
    after.status.nodes.pop_back();
    EXPECT_FALSE(asks_the_same(before, after));
}

TEST(Warmups, NeedAFillerOnEachNode) {
    const DatasetWarmup warmup = make_warmup();
    EXPECT_THAT(
        warmup_places(make_dataset(), {warmup}, wall(0)),
        ElementsAre(FillerPlace{"nvme", "n1"}, FillerPlace{"nvme", "n2"}));
    EXPECT_THAT(warmup_places(make_dataset("coco"), {warmup}, wall(0)), IsEmpty());
    EXPECT_THAT(warmup_places(make_shared_dataset(), {warmup}, wall(0)), IsEmpty())
        << "another namespace's Dataset of that name";
}

TEST(Warmups, GrantStaysUntilTheLeaderHasStopped) {
    DatasetWarmup warmup = make_warmup();
    EXPECT_THAT(
        filling_nodes(make_dataset(), "nvme", {warmup}, {}, wall(100)), ElementsAre("n1", "n2"));
    EXPECT_THAT(filling_nodes(make_dataset(), "other", {warmup}, {}, wall(100)), IsEmpty());
    warmup.spec.suspend = true;
    SidecarReport report = make_fill_report(1, 100);
    EXPECT_THAT(
        filling_nodes(make_dataset(), "nvme", {warmup}, {report}, wall(100)), ElementsAre("n2"));
    report.datasets[0].fill.reset();
    EXPECT_THAT(filling_nodes(make_dataset(), "nvme", {warmup}, {report}, wall(100)), IsEmpty());
}

TEST(Warmups, GrantStaysAsLongAsTheFillers) {
    DatasetWarmup warmup = make_warmup();
    end(warmup, kWarmupComplete, 100);
    warmup.spec.ttl_seconds_after_finished = 60;
    const auto nodes_at = [&](std::int64_t second) {
        return filling_nodes(make_dataset(), "nvme", {warmup}, {}, wall(second));
    };
    EXPECT_THAT(nodes_at(159), ElementsAre("n1", "n2"));
    EXPECT_THAT(nodes_at(160), IsEmpty());
}

TEST(Warmups, HaveNothingOnNodesThatAreGone) {
    DatasetWarmup warmup = make_warmup();
    warmup.status.nodes[1].state = kWarmupNodeGone;
    EXPECT_THAT(
        warmup_places(make_dataset(), {warmup}, wall(0)), ElementsAre(FillerPlace{"nvme", "n1"}));
    EXPECT_THAT(filling_nodes(make_dataset(), "nvme", {warmup}, {}, wall(100)), ElementsAre("n1"));
}

TEST(Warmups, TellWhichPlacesTheyFill) {
    DatasetWarmup warmup = make_warmup();
    warmup.status.nodes[1].state = kWarmupNodeGone;
    EXPECT_THAT(open_places(make_dataset(), {warmup}), ElementsAre(FillerPlace{"nvme", "n1"}));
    EXPECT_THAT(open_places(make_dataset("coco"), {warmup}), IsEmpty());
    DatasetWarmup suspended = warmup;
    suspended.spec.suspend = true;
    EXPECT_THAT(open_places(make_dataset(), {suspended}), IsEmpty());
    end(warmup, kWarmupComplete, 100);
    warmup.spec.ttl_seconds_after_finished = 60;
    EXPECT_THAT(open_places(make_dataset(), {warmup}), IsEmpty());
}

class OrderFills : public testing::Test {
protected:
    OrderFills() {
        cluster.warmups = {make_warmup()};
        cluster.reports = {make_fill_report(0, 100), make_fill_report(1, 100)};
        for (SidecarReport& report : cluster.reports) {
            report.datasets[0].peer_address = "10.0.0.1:7331";
            report.datasets[0].peer_group_version = 7;
        }
        groups[kUid] = {kUid, 7, {{"n1", "10.0.0.1:7331", 1}, {"n2", "10.0.0.2:7331", 1}}};
    }

    // The orders for n1 and n2: bytes per second, or -1 for none.
    std::vector<std::int64_t> orders(std::int64_t second = 30) {
        std::vector<Grant> grants(3);
        grants[0].node = grants[2].node = "n1";
        grants[1].node = "n2";
        grants[0].dataset_uid = grants[1].dataset_uid = kUid;
        grants[2].dataset_uid = "uid-coco";
        order_fills(cluster, groups, origins, {moment(100).steady, wall(second)}, grants);
        EXPECT_FALSE(grants[2].fill);
        std::vector<std::int64_t> result;
        for (const std::size_t node : {0, 1}) {
            const std::optional<FillOrder>& fill = grants[node].fill;
            result.push_back(fill ? static_cast<std::int64_t>(fill->origin_bytes_per_second) : -1);
        }
        return result;
    }

    ClusterView cluster = make_cluster();
    std::map<std::string, PeerGroup> groups;
    std::vector<FillOrigin> origins;
};

TEST_F(OrderFills, DividesTheRateAmongNodesThatAreNotDone) {
    EXPECT_THAT(orders(), ElementsAre(0, 0)) << "no limit";
    cluster.warmups[0].spec.rate_limit = Bytes{1000};
    EXPECT_THAT(orders(), ElementsAre(500, 500));
    cluster.warmups[0].status.nodes[0].state = kWarmupNodeDone;
    EXPECT_THAT(orders(), ElementsAre(1000, 1000));
    cluster.warmups[0].status.nodes[0].state = kWarmupNodeGone;
    EXPECT_THAT(orders(), ElementsAre(-1, 1000));
    cluster.warmups[0].spec.rate_limit = Bytes{1};
    cluster.warmups[0].status.nodes[0].state = kWarmupNodeFilling;
    EXPECT_THAT(orders(), ElementsAre(1, 1)) << "0 would be no limit";
}

TEST_F(OrderFills, ShareWhatJobsLeaveOfThePoolsOriginBandwidth) {
    origins = {{"nvme", 900, 0}, {"other", 5, 0}};
    EXPECT_THAT(orders(), ElementsAre(450, 450));
    cluster.warmups[0].spec.rate_limit = Bytes{100};
    EXPECT_THAT(orders(), ElementsAre(50, 50)) << "the warm-up's own limit is lower";
    cluster.warmups[0].spec.rate_limit = Bytes{10'000};
    EXPECT_THAT(orders(), ElementsAre(450, 450));
    origins[0].unprofiled = 1;
    EXPECT_THAT(orders(), ElementsAre(300, 300)) << "a job without a profile has a part";
    cluster.warmups[0].status.nodes[0].state = kWarmupNodeDone;
    EXPECT_THAT(orders(), ElementsAre(450, 450));
    origins[0] = {"nvme", 0, 0};
    EXPECT_THAT(orders(), ElementsAre(1, 1)) << "0 would be no limit";
}

TEST_F(OrderFills, WaitForAllNodesToKnowTheirGroup) {
    cluster.reports[1].datasets[0].peer_group_version = 6;
    EXPECT_THAT(orders(), ElementsAre(-1, -1));
    EXPECT_THAT(orders(61), ElementsAre(0, -1)) << "not for ever";
    cluster.reports[1].datasets[0].peer_group_version = 7;
    cluster.reports[1].datasets[0].manifest_state = ManifestState::kListing;
    EXPECT_THAT(orders(), ElementsAre(-1, -1));
    cluster.reports[1].datasets[0].manifest_state = ManifestState::kReady;
    groups[kUid].members.pop_back();
    EXPECT_THAT(orders(61), ElementsAre(0, -1)) << "the group lacks n2";
}

TEST_F(OrderFills, NeedNoGroupWithoutPeers) {
    groups.clear();
    EXPECT_THAT(orders(), ElementsAre(-1, -1));
    cluster.datasets[0].spec.peers = PeerMode::kOff;
    EXPECT_THAT(orders(), ElementsAre(0, 0));
}

TEST_F(OrderFills, StopWithTheWarmup) {
    cluster.warmups[0].spec.suspend = true;
    EXPECT_THAT(orders(), ElementsAre(-1, -1));
}

TEST_F(OrderFills, TheHigherRateLimitOfTwoWarmupsApplies) {
    cluster.warmups[0].spec.rate_limit = Bytes{1000};
    cluster.warmups.push_back(cluster.warmups[0]);
    cluster.warmups[1].spec.rate_limit = Bytes{4000};
    EXPECT_THAT(orders(), ElementsAre(2000, 2000));
    cluster.warmups[1].spec.rate_limit.reset();
    EXPECT_THAT(orders(), ElementsAre(0, 0));
}

TEST(WarmupDemand, IsAFillOfTheNodesThatHaveAPod) {
    ClusterView cluster = make_cluster();
    cluster.jobs = {make_filler_use(make_dataset())};
    EXPECT_THAT(view_allocation(cluster, moment(100)).demands, IsEmpty()) << "a guest's filler";
    cluster.jobs[0].filling = {"n1", "n9"};
    cluster.reports = {make_filler_report(make_dataset(), 100)};
    const AllocationView view = view_allocation(cluster, moment(100));
    ASSERT_EQ(view.demands.size(), 1U);
    EXPECT_THAT(view.demands[0].nodes, ElementsAre("n1")) << "n9 has no pod";
    EXPECT_TRUE(view.demands[0].fill);
    EXPECT_THAT(view.demands[0].filled, IsEmpty());
    EXPECT_GT(view.demands[0].datasets.at(0).total, gib(4));
    const AllocationPlan plan = plan_allocation(view);
    ASSERT_EQ(plan.grants.size(), 1U);
    EXPECT_EQ(plan.grants[0].resident_bytes, view.demands[0].datasets[0].total);
}

TEST(WarmupDemand, TellsOnWhichNodesItHasEnded) {
    ClusterView cluster = make_cluster();
    cluster.jobs = {make_filler_use(make_dataset())};
    cluster.jobs[0].filling = cluster.jobs[0].filled = {"n1", "n9"};
    const AllocationView view = view_allocation(cluster, moment(100));
    EXPECT_THAT(view.demands.at(0).filled, ElementsAre("n1")) << "n9 has no pod";
}

// A grant of 0 would evict what an earlier filler has warmed.
TEST(WarmupDemand, UsesTheLastSizeUntilALeaderHasListed) {
    ClusterView cluster = make_cluster();
    Dataset dataset = make_dataset();
    dataset.status.total_bytes = count_of(gib(4));
    dataset.status.samples = 1000;
    cluster.jobs = {make_filler_use(dataset)};
    cluster.jobs[0].filling = {"n1"};
    cluster.reports = {make_filler_report(dataset, 100)};
    cluster.reports[0].datasets[0].manifest_state = ManifestState::kListing;
    const AllocationPlan plan = plan_allocation(view_allocation(cluster, moment(100)));
    ASSERT_EQ(plan.grants.size(), 1U);
    EXPECT_GE(plan.grants[0].resident_bytes, gib(4));
}

// The pool has room for one of two datasets: the job's.
TEST(WarmupDemand, TakesNothingFromJobs) {
    ClusterView cluster = make_cluster();
    cluster.pools[0].spec.capacity_per_node = gib(5);
    cluster.reports = {
        make_report(make_running_view(), 0, 100), make_report(make_running_view(), 1, 100)};
    Dataset coco = make_dataset("coco");
    cluster.datasets.push_back(coco);
    JobUse filler = make_filler_use(coco);
    filler.filling = {"n1"};
    cluster.jobs.push_back(filler);
    SidecarReport report = make_filler_report(coco, 100);
    report.datasets[0].dataset_uid = coco.meta.uid;
    cluster.reports.push_back(report);
    AllocationView view = view_allocation(cluster, moment(100));
    for (Demand& demand : view.demands) {
        if (demand.job.name == "resnet") {
            demand.rates = JobRates{1e8, 1, 1, false};
        }
    }
    const AllocationPlan plan = plan_allocation(view);
    for (const Grant& grant : plan.grants) {
        if (grant.dataset_uid == kUid) {
            EXPECT_GE(grant.resident_bytes, gib(4)) << grant.node;
        }
    }
}

TEST(Warmups, GetRoomFromSweepsOfTheirNodesAndTheirNamespace) {
    const std::vector<Dataset> datasets{make_dataset(), make_dataset("coco")};
    const auto has_room = [&](const Sweep& sweep) {
        return makes_room({sweep}, make_warmup(), datasets);
    };
    EXPECT_TRUE(has_room({"nvme", "n2", "uid-other", gib(1)}));
    EXPECT_TRUE(has_room({"nvme", "n9", "uid-coco", gib(1)})) << "the quota's room";
    EXPECT_FALSE(has_room({"nvme", "n9", "uid-other", gib(1)}));
    EXPECT_FALSE(has_room({"ssd", "n2", "uid-coco", gib(1)}));
}

TEST(ChooseNodes, ByNameSelectorAndCount) {
    std::vector<Node> nodes{make_node("n1"), make_node("n2"), make_node("n3")};
    nodes[2].meta.labels["gpu"] = "h100";
    Dataset dataset = make_dataset();
    DatasetWarmupSpec spec;
    const auto chosen = [&] { return choose_nodes(spec, make_pool(), nodes, dataset); };
    EXPECT_THAT(chosen(), ElementsAre("n1", "n2", "n3"));
    spec.nodes.names = {"n3", "n1", "n8"};
    EXPECT_THAT(chosen(), ElementsAre("n1", "n3"));
    spec.nodes.names.clear();
    spec.nodes.selector = LabelSelector{{{"gpu", "h100"}}, {}};
    EXPECT_THAT(chosen(), ElementsAre("n3"));
    spec.nodes.selector.reset();
    spec.nodes.count = 2;
    EXPECT_THAT(chosen(), ElementsAre("n1", "n2"));
    dataset.status.placements = {{"nvme", "n3", 100, 1}, {"nvme", "n2", 200, 1}};
    EXPECT_THAT(chosen(), ElementsAre("n2", "n3")) << "those with most bytes";
    nodes[2].ready = false;
    EXPECT_THAT(chosen(), ElementsAre("n1", "n2"));
}

}  // namespace
}  // namespace stoker::control
