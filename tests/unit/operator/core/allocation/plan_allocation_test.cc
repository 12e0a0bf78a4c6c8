#include "operator/core/allocation/plan_allocation.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/planned_cluster.h"

namespace stoker::control {
namespace {

bool has_grant(const AllocationPlan& plan, const std::string& node, const std::string& uid) {
    return std::ranges::any_of(plan.grants, [&](const Grant& grant) {
        return grant.node == node && grant.dataset_uid == uid;
    });
}

std::ptrdiff_t reclaimed(const AllocationPlan& plan, const std::string& uid) {
    return std::ranges::count(plan.reclaims, uid, &Reclaim::dataset_uid);
}

TEST(PlanAllocation, GivesAnAutoJobItsWholeDatasetOnEachOfItsNodes) {
    const AllocationPlan plan =
        plan_allocation(view(gib(10), {demand(1, {"n1", "n2"}, {dataset("d", gib(3))})}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(3));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(3));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kGranted);
    EXPECT_EQ(allocation(plan, "job1").granted, gib(6));
    EXPECT_EQ(plan.grants.at(0).reason, "Granted");
    EXPECT_EQ(plan.grants.at(0).valid_seconds, 60U);
}

// An uncertain profile changes the value of bytes in comparisons, not the predicted rate.
TEST(PlanAllocation, PredictsMeasuredRatesAtAnyConfidence) {
    Demand slow = demand(1, {"n1"}, {dataset("slow", gib(3))});
    slow.rates = {1e6, 1e6, 0.3, true};
    Demand fast = demand(2, {"n1"}, {dataset("fast", gib(3))});
    fast.rates = {50e6, 10e6, 0.3, false};
    AllocationView cluster = view(gib(1), {slow, fast});
    cluster.pools = {{kPool}};
    cluster.pools[0].origin_bytes_per_second = 16e6;
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_DOUBLE_EQ(allocation(plan, "job1").numbers.ingest_rate, 1e6);
    EXPECT_DOUBLE_EQ(allocation(plan, "job1").numbers.rate, 1e6);
    EXPECT_DOUBLE_EQ(allocation(plan, "job2").numbers.ingest_rate, 50e6);
    EXPECT_NEAR(allocation(plan, "job2").numbers.rate, 15e6 / (2.0 / 3), 1)
        << "job2 gets the bandwidth that job1 leaves";
}

TEST(PlanAllocation, DividesMaxBytesOverTheNodes) {
    Demand job = demand(1, {"n1", "n2"}, {dataset("d", gib(3))});
    job.max_bytes = gib(4);
    const AllocationPlan plan = plan_allocation(view(gib(10), {job}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").wanted, gib(4));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kGranted);
}

TEST(PlanAllocation, GivesAFixedJobExactlyItsRequest) {
    Demand job = demand(1, {"n1"}, {dataset("big", gib(9)), dataset("small", gib(1))});
    job.mode = CacheMode::kFixed;
    job.max_bytes = gib(6);
    const AllocationPlan six = plan_allocation(view(gib(100), {job}));
    EXPECT_EQ(granted(six, "n1", "big"), gib(5));
    EXPECT_EQ(granted(six, "n1", "small"), gib(1));
    job.max_bytes = gib(14);
    EXPECT_EQ(allocation(plan_allocation(view(gib(100), {job})), "job1").granted, gib(14));
    job.datasets = {dataset("unknown", std::nullopt)};
    const AllocationPlan unknown = plan_allocation(view(gib(100), {job}));
    EXPECT_EQ(granted(unknown, "n1", "unknown"), gib(14));
    EXPECT_EQ(allocation(unknown, "job1").reason, AllocationReason::kGranted);
}

TEST(PlanAllocation, WaitsForTheDatasetSizeInModeAuto) {
    const AllocationPlan plan =
        plan_allocation(view(gib(10), {demand(1, {"n1"}, {dataset("d", std::nullopt)})}));
    EXPECT_EQ(granted(plan, "n1", "d"), Bytes::zero());
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kProfiling);
    EXPECT_EQ(
        allocation(plan, "job1").message,
        "No bytes are given out until the size of every dataset is known: the origin has to be "
        "listed first.");
}

TEST(PlanAllocation, DividesTheQuotaEvenlyAndReportsItAsTheLimit) {
    AllocationView v = view(gib(10), {demand(1, {"n1", "n2"}, {dataset("d", gib(3))})});
    v.quotas = {{"a", kPool, gib(4)}};
    const AllocationPlan plan = plan_allocation(v);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kQuotaExhausted);
    EXPECT_EQ(
        allocation(plan, "job1").message,
        "4Gi of 6Gi granted: the datasets of namespace a may hold 4Gi in pool nvme, and all of it "
        "is "
        "given out.");
}

TEST(PlanAllocation, IgnoresQuotasOfOtherPoolsAndNamespaces) {
    AllocationView v = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(3))})});
    v.quotas = {{"a", "other", Bytes::zero()}, {"b", kPool, Bytes::zero()}};
    EXPECT_EQ(granted(plan_allocation(v), "n1", "d"), gib(3));
}

TEST(PlanAllocation, DividesANodeEvenlyWithoutProfiles) {
    const AllocationPlan plan = plan_allocation(view(
        gib(4),
        {demand(2, {"n1"}, {dataset("young", gib(3))}),
         demand(1, {"n1"}, {dataset("old", gib(3))})}));
    EXPECT_EQ(granted(plan, "n1", "old"), gib(2));
    EXPECT_EQ(granted(plan, "n1", "young"), gib(2));
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kProfiling);
    EXPECT_EQ(
        allocation(plan, "job2").message,
        "2Gi of 3Gi granted: an even share until it is known how fast the job reads.");
}

TEST(PlanAllocation, ServesTheOlderJobsMinimumFirstWhenANodeIsFull) {
    Demand young = demand(2, {"n1"}, {dataset("young", gib(3))});
    Demand old = demand(1, {"n1"}, {dataset("old", gib(3))});
    young.min_bytes = gib(3);
    old.min_bytes = gib(3);
    AllocationView v = view(gib(4), {young, old});
    v.quotas = {{"a", kPool, gib(8)}};
    AllocationPlan plan = plan_allocation(v);
    EXPECT_EQ(granted(plan, "n1", "old"), gib(3));
    EXPECT_EQ(granted(plan, "n1", "young"), gib(1));
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kPoolFull);
    EXPECT_EQ(
        allocation(plan, "job2").message,
        "1Gi of 3Gi granted: the job's nodes have no more room in pool nvme.");
    v.demands[0].priority = 1;
    plan = plan_allocation(v);
    EXPECT_EQ(granted(plan, "n1", "young"), gib(3));
}

TEST(PlanAllocation, GivesMinimumsFirst) {
    Demand young = demand(2, {"n1"}, {dataset("young", gib(3))});
    young.min_bytes = gib(2);
    AllocationView v = view(gib(4), {demand(1, {"n1"}, {dataset("old", gib(3))}), young});
    v.quotas = {{"a", kPool, gib(8)}};
    v.demands[0].rates = JobRates{1e9, 0, 1, false};
    const AllocationPlan plan = plan_allocation(v);
    EXPECT_EQ(granted(plan, "n1", "young"), gib(2));
    EXPECT_EQ(granted(plan, "n1", "old"), gib(2));
}

TEST(PlanAllocation, GrantsASharedDatasetOnceAndChargesItsUsersEvenly) {
    Demand second = demand(2, {"n1"}, {dataset("d", gib(4))});
    second.max_bytes = gib(1);
    AllocationView v = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(4))}), second});
    v.quotas = {{"a", kPool, gib(4)}};
    const AllocationPlan plan = plan_allocation(v);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(4));
    EXPECT_EQ(plan.grants.size(), 1U);
    EXPECT_EQ(plan.charges.at(0).charged, gib(2));
    EXPECT_EQ(plan.charges.at(1).charged, gib(2));
    EXPECT_EQ(allocation(plan, "job2").granted, gib(1));
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kGranted);
}

TEST(PlanAllocation, CountsADatasetUnderTwoNamesOnce) {
    const AllocationPlan plan = plan_allocation(
        view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(4)), dataset("d", gib(4))})}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(4));
    EXPECT_EQ(allocation(plan, "job1").granted, gib(4));
}

TEST(PlanAllocation, LeavesIdleBytesAlone) {
    AllocationView v = view(gib(4), {demand(1, {"n1"}, {dataset("d", gib(3))})});
    v.holdings = {{kPool, "n1", "idle", gib(2), Bytes::zero()}};
    const AllocationPlan plan = plan_allocation(v);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kPoolFull);
}

// The sidecar may outlast the jobs that read the dataset, and fill the grant until it expires.
TEST(PlanAllocation, ReservesTheOutstandingGrantOfAnIdleDataset) {
    AllocationView v = view(gib(8), {demand(1, {"n1", "n2"}, {dataset("d", gib(8))})});
    v.holdings = {{kPool, "n1", "idle", gib(1), gib(5), gib(5), "a"}};
    const AllocationPlan first = plan_allocation(v);
    EXPECT_EQ(granted(first, "n1", "d"), gib(3));
    EXPECT_EQ(granted(first, "n2", "d"), gib(8));
    v.quotas = {QuotaView{"a", kPool, gib(9)}};
    EXPECT_EQ(allocation(plan_allocation(v), "job1").granted, gib(4));
    v.holdings[0].outstanding = gib(1);
    EXPECT_EQ(allocation(plan_allocation(v), "job1").granted, gib(8));
    v.quotas.clear();
    EXPECT_EQ(granted(plan_allocation(v), "n1", "d"), gib(7));
}

TEST(PlanAllocation, SweepsNothingIfAnExpiringGrantWillFreeEnoughRoom) {
    AllocationView v = view(gib(8), {demand(1, {"n1"}, {dataset("d", gib(2))})});
    v.holdings = {
        {kPool, "n1", "left", gib(1), gib(5), gib(5), "a"}, {kPool, "n1", "old", gib(2), {}}};
    EXPECT_EQ(granted(plan_allocation(v), "n1", "d"), gib(1));
    EXPECT_TRUE(plan_allocation(v).sweeps.empty());
    v.holdings[0].resident = gib(5);
    EXPECT_FALSE(plan_allocation(v).sweeps.empty());
}

TEST(PlanAllocation, ShrinksADatasetBeforeAnotherGrows) {
    Demand old = demand(1, {"n1"}, {dataset("old", gib(4))});
    old.max_bytes = gib(1);
    AllocationView v = view(gib(4), {old, demand(2, {"n1"}, {dataset("young", gib(4))})});
    v.holdings = {{kPool, "n1", "old", gib(4), gib(4)}};
    const AllocationPlan first = plan_allocation(v);
    EXPECT_EQ(granted(first, "n1", "old"), gib(1));
    EXPECT_EQ(granted(first, "n1", "young"), Bytes::zero());
    v.holdings = {{kPool, "n1", "old", gib(1), gib(1)}};
    EXPECT_EQ(granted(plan_allocation(v), "n1", "young"), gib(3));
}

// The sidecar has reported 6 GiB and must shrink to 2 GiB. It may have evicted the 4 GiB by now, so
// a larger grant would let it fetch them again.
TEST(PlanAllocation, NoGrantGrowsBackOnAnOverfullNode) {
    AllocationView v = view(
        gib(10),
        {demand(1, {"n1"}, {dataset("late", gib(8))}),
         demand(2, {"n1"}, {dataset("evicting", gib(8))})});
    v.holdings = {
        {kPool, "n1", "late", gib(8), gib(8), gib(8)},
        {kPool, "n1", "evicting", gib(6), gib(2), gib(2)}};
    EXPECT_EQ(granted(plan_allocation(v), "n1", "evicting"), gib(2));
    v.holdings[0] = {kPool, "n1", "late", gib(4), gib(4), gib(4)};
    EXPECT_GE(granted(plan_allocation(v), "n1", "evicting"), gib(5));
}

// Seed 200001 of tests/world: a status shows 6 GiB that the disk may not have any more. A grant of as
// many bytes would let the new leader fetch them, although the other dataset has yet to evict.
TEST(PlanAllocation, UncountedBytesGetNoGrantOnAnOverfullNode) {
    AllocationView v = view(
        gib(10),
        {demand(1, {"n1"}, {dataset("late", gib(8))}),
         demand(2, {"n1"}, {dataset("new", gib(8))})});
    Holding holding{kPool, "n1", "new", gib(6), Bytes::unlimited(), {}};
    holding.uncounted = true;
    v.holdings = {{kPool, "n1", "late", gib(8), gib(8), gib(8)}, holding};
    const AllocationPlan withheld = plan_allocation(v);
    EXPECT_FALSE(has_grant(withheld, "n1", "new"));
    EXPECT_TRUE(has_grant(withheld, "n1", "late"));
    EXPECT_EQ(reclaimed(withheld, "new"), 0) << "no reclaim asks for these bytes";

    v.holdings[1].uncounted = false;
    EXPECT_TRUE(has_grant(plan_allocation(v), "n1", "new")) << "the leader has counted its bytes";
    v.holdings[1] = holding;
    v.holdings[1].resident = {};
    EXPECT_TRUE(has_grant(plan_allocation(v), "n1", "new")) << "the grant comes from free room";
    v.holdings = {{kPool, "n1", "late", gib(4), gib(4), gib(4)}, holding};
    EXPECT_TRUE(has_grant(plan_allocation(v), "n1", "new")) << "the node has room for both";
}

// The job of the first dataset has ended, so nobody is granted its bytes.
TEST(PlanAllocation, UncountedBytesGetNoGrantWhereIdleBytesOverfillTheNode) {
    AllocationView v = view(gib(10), {demand(1, {"n1"}, {dataset("new", gib(8))})});
    Holding holding{kPool, "n1", "new", gib(6), Bytes::unlimited(), {}};
    holding.uncounted = true;
    v.holdings = {{kPool, "n1", "idle", gib(8), {}, {}}, holding};
    EXPECT_FALSE(has_grant(plan_allocation(v), "n1", "new"));
}

// The job's status records this grant: after a restart, the operator reserves that many bytes for a
// sidecar that does not report.
TEST(PlanAllocation, ReportsTheLargestGrantThatASidecarMayHold) {
    Demand job = demand(1, {"n1"}, {dataset("d", gib(4))});
    job.max_bytes = gib(1);
    AllocationView cluster = view(gib(4), {job});
    cluster.holdings = {{kPool, "n1", "d", gib(2), gib(1), gib(3)}};
    const JobAllocation result = allocation(plan_allocation(cluster), "job1");
    EXPECT_EQ(result.granted, gib(1));
    EXPECT_EQ(result.datasets, std::vector<Bytes>{gib(3)});
}

TEST(PlanAllocation, KeepsUnneededBytesUntilAnotherJobWantsThem) {
    Demand job = demand(1, {"n1"}, {dataset("d", gib(4))});
    job.rates = {100e6, 75e6, 1, false};  // a quarter of the dataset is enough
    EXPECT_EQ(granted(plan_allocation(view(gib(4), {job})), "n1", "d"), gib(1));
    AllocationView cluster = view(gib(4), {job});
    cluster.holdings = {{kPool, "n1", "d", gib(3), gib(3), gib(3)}};
    const AllocationPlan alone = plan_allocation(cluster);
    EXPECT_EQ(granted(alone, "n1", "d"), gib(3)) << "the job keeps exactly the bytes that it has";
    EXPECT_EQ(allocation(alone, "job1").reason, AllocationReason::kGranted);
    Demand other = demand(2, {"n1"}, {dataset("e", gib(2))});
    other.rates = {10e6, 1e3, 1, false};  // slow, but its bytes have some value
    cluster.demands.push_back(other);
    EXPECT_NEAR(to_gib(granted(plan_allocation(cluster), "n1", "d")), 2, 0.01);
    cluster.demands[0].rates->compute_bound = true;
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), Bytes::zero());
}

TEST(PlanAllocation, StopPolicyHoldEndsGrowthAndHoldAndDrainTakesAllBytes) {
    AllocationView v = view(
        gib(10),
        {demand(1, {"n1"}, {dataset("d", gib(4))}), demand(2, {"n1"}, {dataset("e", gib(4))})});
    v.holdings = {{kPool, "n1", "d", gib(1), gib(2)}};
    v.pools = {{kPool, StopPolicy::kHold}};
    const AllocationPlan held = plan_allocation(v);
    EXPECT_EQ(granted(held, "n1", "d"), gib(2));
    EXPECT_EQ(granted(held, "n1", "e"), Bytes::zero());
    EXPECT_EQ(allocation(held, "job1").reason, AllocationReason::kStopped);
    v.pools.clear();
    v.quotas = {{"a", kPool, gib(100), StopPolicy::kHoldAndDrain}};
    EXPECT_EQ(granted(plan_allocation(v), "n1", "d"), Bytes::zero());
}

TEST(PlanAllocation, PlansNothingForAnEmptyCluster) {
    EXPECT_EQ(plan_allocation({}), AllocationPlan{});
}

TEST(PlanAllocation, NoGrantGrowsUntilAllSidecarsHaveReported) {
    AllocationView cluster = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(8))})});
    cluster.holdings = {{kPool, "n1", "d", gib(3), gib(3), gib(3)}};
    cluster.settled = false;
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(3));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kPoolFull);
    EXPECT_NE(allocation(plan, "job1").message.find("just begun to lead"), std::string::npos);
    cluster.settled = true;
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(8));
}

TEST(PlanAllocation, NamespaceThatReturnsBytesLateGetsNoMore) {
    Demand other = demand(2, {"n1"}, {dataset("e", gib(2))});
    other.job.ns = "b";
    AllocationView cluster =
        view(gib(10), {demand(1, {"n1", "n2"}, {dataset("d", gib(4))}), other});
    cluster.held_back = {{kPool, "a", "Pod p keeps 3Gi."}, {"elsewhere", "b", "no"}};
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), Bytes::zero());
    EXPECT_EQ(granted(plan, "n1", "e"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kReclaimed);
    EXPECT_EQ(allocation(plan, "job1").message, "0B of 8Gi granted: Pod p keeps 3Gi.");
    // The namespace keeps its present bytes.
    cluster.holdings = {{kPool, "n2", "d", gib(1), gib(2), gib(2)}};
    EXPECT_EQ(granted(plan_allocation(cluster), "n2", "d"), gib(2));
}

// The planner cuts a job's benefit curve into straight pieces. With pieces of 64 MiB, a curve on
// this small node would be one line: its last bytes would seem worth as much as its first ones.
TEST(PlanAllocation, CutsCurvesFinelyOnSmallNodes) {
    DemandDataset steep = dataset("steep", mib(100));
    steep.access = {AccessKind::kImportance, 1, {}};
    AllocationView cluster = view(
        mib(100),
        {waiting(demand(1, {"n1"}, {steep}), 1e6),
         waiting(demand(2, {"n1"}, {dataset("flat", mib(100))}), 1e6)});
    cluster.step = mib(64);
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_NEAR(
        static_cast<double>(granted(plan, "n1", "steep").count()),
        50.0 * (1 << 20),
        7.0 * (1 << 20));
    EXPECT_NEAR(
        static_cast<double>(granted(plan, "n1", "flat").count()),
        50.0 * (1 << 20),
        7.0 * (1 << 20));
}

TEST(PlanAllocation, SweepsLeastRecentlyUsedBytesAndOnlyAsManyAsNeeded) {
    AllocationView cluster = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(6))})});
    const auto idle = [](const std::string& node, const std::string& uid, Bytes bytes, int used) {
        Holding holding{kPool, node, uid, bytes, {}};
        holding.ns = "a";
        holding.last_used = WallTime{std::chrono::seconds{used}};
        return holding;
    };
    cluster.holdings = {
        idle("n1", "young", gib(3), 9), idle("n1", "old", gib(4), 1), idle("n2", "far", gib(9), 0)};
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(3));
    EXPECT_EQ(plan.sweeps, (std::vector<Sweep>{{kPool, "n1", "old", gib(4)}}));
    // Where the quota binds, the namespace's idle bytes on any node must be swept.
    cluster.quotas = {{"a", kPool, gib(18)}};
    EXPECT_EQ(plan_allocation(cluster).sweeps.at(0).dataset_uid, "far");
    cluster.holdings = {idle("n2", "far", gib(9), 0)};
    cluster.quotas[0].nominal = gib(12);
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(3));
    EXPECT_EQ(plan_allocation(cluster).sweeps, (std::vector<Sweep>{{kPool, "n2", "far", gib(9)}}));
    cluster.quotas[0].nominal = gib(15);
    EXPECT_TRUE(plan_allocation(cluster).sweeps.empty());
}

// Nobody else wants the bytes.
TEST(PlanAllocation, NamespaceWhoseWeightBecomesZeroReturnsWhatItBorrowed) {
    AllocationView cluster =
        view(gib(4), {waiting(demand(1, {"n1"}, {dataset("d", gib(2))}), 100)});
    QuotaView quota{"a", kPool, gib(1)};
    quota.borrowing = Bytes::unlimited();
    quota.lending = Bytes::unlimited();
    cluster.quotas = {quota};
    cluster.holdings = {{kPool, "n1", "d", gib(2), gib(2), gib(2), "a"}};
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(2));
    cluster.quotas[0].weight = 0;
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(1));
}

}  // namespace
}  // namespace stoker::control
