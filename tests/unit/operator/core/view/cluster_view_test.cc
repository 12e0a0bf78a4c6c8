#include "operator/core/view/cluster_view.h"

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "tests/unit/operator/core/make_node_report.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(Matches, RequiresEveryLabel) {
    EXPECT_TRUE(matches({}, {}));
    EXPECT_TRUE(matches({{"a", "1"}}, {{"a", "1"}, {"b", "2"}}));
    EXPECT_FALSE(matches({{"a", "1"}}, {{"a", "2"}}));
    EXPECT_FALSE(matches({{"a", ""}}, {}));
}

TEST(PoolNodes, AreAllNodesThatTheSelectorMatches) {
    CachePool picky = make_pool("picky");
    picky.spec.node_selector = {{"gpu", "yes"}};
    Node gpu = make_node("n2");
    gpu.meta.labels = {{"gpu", "yes"}};
    const std::vector<PoolNode> nodes = pool_nodes({make_pool(), picky}, {make_node("n1"), gpu});
    EXPECT_EQ(
        nodes,
        (std::vector<PoolNode>{
            {"nvme", "n1", gib(100)}, {"nvme", "n2", gib(100)}, {"picky", "n2", gib(100)}}));
}

// Names of planned_nodes(). The operator has accepted node reports since second 0; by default, long
// ago.
std::vector<std::string> planned(ClusterView cluster, std::int64_t second = 1000) {
    cluster.programs.listening_since = moment(0).steady;
    std::vector<std::string> names;
    for (const PoolNode& place : planned_nodes(cluster, moment(second).steady)) {
        names.push_back(place.node);
    }
    return names;
}

TEST(PlannedNodes, AreNodesWithAReadyDirectory) {
    ClusterView cluster = make_cluster();
    cluster.jobs.clear();
    EXPECT_EQ(planned(cluster), std::vector<std::string>{});
    cluster.programs.reports = {make_known(make_node_report("n2", make_pool_state("/mnt/nvme")))};
    EXPECT_EQ(planned(cluster), std::vector<std::string>{"n2"})
        << "however long ago: a silent program takes nothing away";
    cluster.pools[0].spec.host_path = "/mnt/other";
    EXPECT_EQ(planned(cluster), std::vector<std::string>{});
}

TEST(PlannedNodes, NewOperatorWaitsForNodeReports) {
    ClusterView cluster = make_cluster();
    cluster.jobs.clear();
    cluster.programs.reports = {
        make_known(make_node_report("n2", make_pool_state("/mnt/nvme", PoolVerdict::kFailed)))};
    EXPECT_EQ(planned(cluster, 60), std::vector<std::string>{"n1"});
    EXPECT_EQ(planned(cluster, 61), std::vector<std::string>{});
}

TEST(PlannedNodes, RunningPodCountsWithoutANodeReport) {
    ClusterView cluster = make_cluster();
    EXPECT_EQ(planned(cluster), (std::vector<std::string>{"n1", "n2"}));
    cluster.jobs[0].pods[0].edit().phase = PodPhase::kPending;
    cluster.jobs[0].pods[1].edit().phase = PodPhase::kFailed;
    EXPECT_EQ(planned(cluster), std::vector<std::string>{});
    cluster.jobs[0].pods[0].edit().sidecar.started = true;
    EXPECT_EQ(planned(cluster), std::vector<std::string>{"n1"});
    cluster.jobs[0].pool.name = "another";
    EXPECT_EQ(planned(cluster), std::vector<std::string>{});
}

TEST(PlannedNodes, RunningPodOutweighsAFailedPoolDirectoryButNotARefusedOne) {
    ClusterView cluster = make_cluster();
    const std::pair<PoolVerdict, std::size_t> cases[] = {
        {PoolVerdict::kFailed, 2},
        {PoolVerdict::kNotEmpty, 1},
        {PoolVerdict::kOtherPool, 1},
        {PoolVerdict::kRefused, 1}};
    for (const auto& [verdict, count] : cases) {
        cluster.programs.reports = {
            make_known(make_node_report("n1", make_pool_state("/mnt/nvme", verdict)))};
        EXPECT_EQ(planned(cluster).size(), count) << to_string(verdict);
    }
}

TEST(QuotasInForce, AreTheOldestOfEachNamespaceAndPool) {
    CacheQuota old = make_quota("z", "nvme", gib(1));
    CacheQuota young = make_quota("a", "nvme", gib(2));
    young.meta.created_at = wall(9);
    CacheQuota other_namespace = make_quota("b", "nvme", gib(3));
    other_namespace.meta.ns = "b";
    const std::vector<QuotaView> quotas = quotas_in_force({young, old, other_namespace});
    ASSERT_EQ(quotas.size(), 2U);
    EXPECT_EQ(quotas[0].nominal, gib(1));
    EXPECT_EQ(quotas[1].ns, "b");
    EXPECT_TRUE(is_duplicate(young, {young, old}));
    EXPECT_FALSE(is_duplicate(old, {young, old}));
    old.meta.deleting_since = wall(10);
    EXPECT_EQ(quotas_in_force({young, old}).at(0).nominal, gib(2));
}

TEST(ViewAllocation, AddsDemandsOfRunningJobs) {
    ClusterView cluster = make_cluster();
    cluster.jobs[0].job.edit().spec.cache.max_bytes = gib(6);
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    cluster.grant_seconds = 45;
    const AllocationView view = view_allocation(cluster, moment(101));
    ASSERT_EQ(view.demands.size(), 1U);
    const Demand& demand = view.demands[0];
    EXPECT_EQ(demand.job, (ObjectKey{"team", "resnet"}));
    EXPECT_EQ(demand.pool, "nvme");
    EXPECT_EQ(demand.nodes, (std::vector<std::string>{"n1", "n2"}));
    EXPECT_EQ(demand.datasets.at(0).total, domain::records_bytes_max(gib(4), 1000))
        << "the dataset's size on a node, not at its origin";
    EXPECT_EQ(demand.max_bytes, gib(6));
    EXPECT_EQ(view.valid_seconds, 45U);
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(plan.jobs.at(0).granted, gib(6));
    EXPECT_EQ(plan.granted_in_pool.at("nvme"), gib(6));
}

TEST(JobUse, IsActiveWhileABlockedJobsAttemptContinues) {
    JobUse use = make_cluster().jobs[0];
    EXPECT_TRUE(use.is_active());
    use.datasets.edit().blocker = {"NotShared", "no"};
    EXPECT_FALSE(use.is_active());
    use.datasets.edit().goes_on = true;
    EXPECT_TRUE(use.is_active());
}

TEST(ViewAllocation, UsesTheProfileOnceItIsDataBoundOrComputeBound) {
    ClusterView cluster = make_cluster();
    const ObjectKey job{"team", "resnet"};
    EXPECT_FALSE(view_allocation(cluster, moment(1)).demands.at(0).rates);
    JobProfile& profile = cluster.profiles[job];
    profile.ingest_rate = 300;
    profile.origin_rate = 100;
    profile.confidence = 0.5;
    EXPECT_FALSE(view_allocation(cluster, moment(1)).demands.at(0).rates);
    profile.verdict = ProfileVerdict::kDataBound;
    EXPECT_EQ(
        view_allocation(cluster, moment(1)).demands.at(0).rates, (JobRates{300, 100, 0.5, false}));
    profile.verdict = ProfileVerdict::kComputeBound;
    EXPECT_TRUE(view_allocation(cluster, moment(1)).demands.at(0).rates->compute_bound);
}

TEST(QuotasInForce, OmittedLimitIsUnlimited) {
    CacheQuota quota;
    quota.meta.ns = "team";
    quota.meta.name = "q";
    quota.spec.pool_ref = "nvme";
    quota.spec.nominal_quota = gib(4);
    QuotaView view = quotas_in_force({quota}).at(0);
    EXPECT_EQ(view.borrowing, Bytes::unlimited());
    EXPECT_EQ(view.lending, Bytes::unlimited());
    EXPECT_EQ(view.weight, 1);
    quota.spec.borrowing_limit = gib(3);
    quota.spec.lending_limit = gib(2);
    quota.spec.fair_sharing = FairSharingSpec{"2.5"};
    quota.spec.reclaim = ReclaimSpec{ReclaimPolicy::kNever, 5};
    view = quotas_in_force({quota}).at(0);
    EXPECT_EQ(view.borrowing, gib(3));
    EXPECT_EQ(view.lending, gib(2));
    EXPECT_EQ(view.weight, 2.5);
    EXPECT_EQ(view.grace_seconds, 5U);
    EXPECT_EQ(view.reclaim, ReclaimPolicy::kNever);
}

TEST(ViewAllocation, PassesOnTheDefaultQuota) {
    ClusterView cluster = make_cluster();
    EXPECT_EQ(view_allocation(cluster, moment(1)).pools.at(0).default_quota, DefaultQuota{});
    cluster.pools[0].spec.default_quota = {gib(2), gib(3), std::nullopt};
    EXPECT_EQ(
        view_allocation(cluster, moment(1)).pools.at(0).default_quota,
        (DefaultQuota{gib(2), gib(3), Bytes::unlimited()}));
}

TEST(ViewAllocation, PassesOnJobWeightsAndDatasetOwners) {
    ClusterView cluster = make_cluster();
    EXPECT_EQ(view_allocation(cluster, moment(1)).demands.at(0).weight, 1);
    cluster.jobs[0].job.edit().spec.cache.weight = 7;
    cluster.jobs[0].datasets.edit().datasets[0].ns = "data";
    const Demand demand = view_allocation(cluster, moment(1)).demands.at(0);
    EXPECT_EQ(demand.weight, 7);
    EXPECT_EQ(demand.datasets.at(0).ns, "data");
}

TEST(QuotasInForce, InvalidQuotaStillLimitsItsNamespace) {
    CacheQuota quota = make_quota("q", "nvme", gib(4));
    quota.spec.borrowing_limit = gib(3);
    quota.spec.lending_limit = gib(9);
    const QuotaView view = quotas_in_force({quota}).at(0);
    EXPECT_EQ(view.nominal, gib(4));
    EXPECT_EQ(view.borrowing, Bytes::zero());
    EXPECT_EQ(view.lending, Bytes::zero());
}

TEST(ViewAllocation, PassesOnObjectiveAndOriginRates) {
    ClusterView cluster = make_cluster();
    EXPECT_EQ(view_allocation(cluster, moment(1)).pools.at(0).objective, Objective::kThroughput);
    EXPECT_EQ(view_allocation(cluster, moment(1)).pools.at(0).origin_bytes_per_second, 0);
    cluster.pools[0].spec.allocation = Objective::kEven;
    cluster.pools[0].spec.origin_bandwidth = Bytes{2'000'000};
    EXPECT_EQ(view_allocation(cluster, moment(1)).pools.at(0).objective, Objective::kEven);
    EXPECT_EQ(view_allocation(cluster, moment(1)).pools.at(0).origin_bytes_per_second, 2e6);
}

TEST(ViewAllocation, PassesOnPricesAndSampleSizes) {
    ClusterView cluster = make_cluster();
    EXPECT_EQ(view_allocation(cluster, moment(1)).pools.at(0).price_per_gib, 0);
    cluster.pools[0].spec.price_per_gib = "0.09";
    cluster.pools[0].spec.price_per_thousand_requests = "0.4";
    cluster.reports = {make_report(make_running_view(), 0, 100)};
    const AllocationView view = view_allocation(cluster, moment(101));
    EXPECT_DOUBLE_EQ(view.pools.at(0).price_per_gib, 0.09);
    EXPECT_DOUBLE_EQ(view.pools.at(0).price_per_request, 0.0004);
    EXPECT_DOUBLE_EQ(
        view.demands.at(0).datasets.at(0).sample_bytes, static_cast<double>(gib(4).count()) / 1000);
}

TEST(ViewAllocation, TakesTheImportanceParameterBetaFromTheJob) {
    ClusterView cluster = make_cluster();
    JobDataset& dataset = cluster.jobs[0].job.edit().spec.datasets.at(0);
    dataset.contract = Contract::kImportance;
    const auto beta = [&] {
        return view_allocation(cluster, moment(1)).demands.at(0).datasets.at(0).access.beta;
    };
    EXPECT_EQ(beta(), 0.33);
    dataset.parameters[Contract::kImportance].numbers["beta"] = 2;
    EXPECT_EQ(beta(), 2);
}

// Contract Importance reads every sample in epochs 0 to 4 (warmupEpochs) and in every third epoch
// after them (reuseFactor): these epochs are full.
TEST(ViewAllocation, CountsFullEpochsOfImportance) {
    ClusterView cluster = make_cluster();
    TrainingJobSpec& spec = cluster.jobs[0].job.edit().spec;
    JobDataset& dataset = spec.datasets.at(0);
    dataset.contract = Contract::kImportance;
    const auto full_epochs = [&](std::int64_t epochs) {
        spec.trainer.epochs = epochs;
        return view_allocation(cluster, moment(1)).demands.at(0).datasets.at(0).access.full_epochs;
    };
    EXPECT_DOUBLE_EQ(full_epochs(0), 1.0 / 3) << "the number of epochs is unknown";
    EXPECT_DOUBLE_EQ(full_epochs(3), 1);
    EXPECT_DOUBLE_EQ(full_epochs(6), 5.0 / 6) << "epoch 5 is selective";
    EXPECT_DOUBLE_EQ(full_epochs(24), 11.0 / 24);
    auto& numbers = dataset.parameters[Contract::kImportance].numbers;
    numbers["warmupEpochs"] = 0;
    numbers["reuseFactor"] = 2;
    EXPECT_DOUBLE_EQ(full_epochs(9), 5.0 / 9) << "epochs 0, 2, 4, 6 and 8";
}

TEST(ViewAllocation, PlansImportanceOfFamilyIowaAsExactUntilItsReadsAreMeasured) {
    ClusterView cluster = make_cluster();
    JobDataset& dataset = cluster.jobs[0].job.edit().spec.datasets.at(0);
    dataset.contract = Contract::kImportance;
    const auto kind = [&] {
        return view_allocation(cluster, moment(1)).demands.at(0).datasets.at(0).access.kind;
    };
    EXPECT_EQ(kind(), AccessKind::kImportance);
    dataset.parameters[Contract::kImportance].words["family"] = "Iowa";
    EXPECT_EQ(kind(), AccessKind::kExact);
}

TEST(ViewAllocation, TakesReplicationFromTheJob) {
    ClusterView cluster = make_cluster();
    JobDataset& dataset = cluster.jobs[0].job.edit().spec.datasets.at(0);
    dataset.contract = Contract::kReplicate;
    const auto access = [&] {
        return view_allocation(cluster, moment(1)).demands.at(0).datasets.at(0).access;
    };
    EXPECT_EQ(access().kind, AccessKind::kReplicate);
    EXPECT_EQ(access().replication, 1);
    EXPECT_EQ(access().bias, 10);
    dataset.parameters[Contract::kReplicate].numbers = {{"replication", 1.5}, {"bias", 20}};
    EXPECT_EQ(access().replication, 1.5);
    EXPECT_EQ(access().bias, 20);
}

TEST(ViewAllocation, IgnoresEndedPods) {
    ClusterView cluster = make_cluster();
    cluster.jobs[0].pods[0].edit().phase = PodPhase::kSucceeded;
    EXPECT_EQ(
        view_allocation(cluster, moment(1)).demands.at(0).nodes, std::vector<std::string>{"n2"});
}

TEST(JobUse, IsActiveUntilItEndsOrIsSuspended) {
    const JobUse use = make_cluster().jobs[0];
    EXPECT_TRUE(use.is_active());
    JobUse other = use;
    other.job.edit().spec.suspend = true;
    EXPECT_FALSE(other.is_active());
    other = use;
    other.job.edit().status.conditions = {{"Complete", ConditionStatus::kTrue, 1, wall(1), "", ""}};
    EXPECT_FALSE(other.is_active());
    other = use;
    other.pool = ResolvedPool{};
    EXPECT_FALSE(other.is_active());
    other = use;
    other.job.edit().meta.deleting_since = wall(1);
    EXPECT_FALSE(other.is_active());
}

}  // namespace
}  // namespace stoker::control
