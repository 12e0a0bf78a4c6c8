// Fills get what jobs do not want.
#include "operator/core/allocation/grant_fills.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/planned_cluster.h"
#include "tests/unit/operator/core/allocation/property_world.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

// A fill of a dataset of 8 GiB in namespace `ns` on n1.
Demand fill(
    const std::string& ns, const std::string& uid, std::vector<std::string> nodes = {"n1"}) {
    Demand result = demand(9, std::move(nodes), {dataset(uid, gib(8))});
    result.job = {ns, "filler/" + uid + "/nvme"};
    result.created_at = WallTime{};  // older than every job
    result.fill = true;
    return result;
}

Demand job(const std::string& ns, const std::string& uid, std::vector<std::string> nodes = {"n1"}) {
    Demand result = demand(1, std::move(nodes), {dataset(uid, gib(8))});
    result.job.ns = ns;
    return result;
}

Holding held(const std::string& ns, const std::string& uid, Bytes bytes) {
    Holding result{kPool, "n1", uid, bytes, bytes, bytes};
    result.ns = ns;
    return result;
}

QuotaView quota(const std::string& ns, Bytes nominal) {
    QuotaView result{ns, kPool, nominal};
    result.borrowing = result.lending = Bytes::unlimited();
    return result;
}

Bytes target(const AllocationPlan& plan, const std::string& ns) {
    const auto found =
        std::ranges::find(plan.jobs, ns, [](const JobAllocation& it) { return it.job.ns; });
    return found == plan.jobs.end() ? Bytes::unlimited() : found->target;
}

TEST(GrantFills, JobWithoutAProfileComesFirst) {
    const AllocationPlan plan =
        plan_allocation(view(gib(10), {fill("a", "warm"), job("a", "read")}));
    EXPECT_EQ(granted(plan, "n1", "read"), gib(8));
    EXPECT_EQ(granted(plan, "n1", "warm"), gib(2));
}

TEST(GrantFills, GetTheNodeWithoutJobs) {
    const AllocationPlan plan = plan_allocation(view(gib(10), {fill("a", "warm")}));
    EXPECT_EQ(granted(plan, "n1", "warm"), gib(8));
    EXPECT_EQ(plan.jobs.at(0).reason, AllocationReason::kGranted);
}

TEST(GrantFills, GiveBackWhatAStartingJobWants) {
    AllocationView it = view(gib(10), {fill("a", "warm"), job("a", "read")});
    it.holdings = {held("a", "warm", gib(8))};
    const AllocationPlan plan = plan_allocation(it);
    EXPECT_EQ(granted(plan, "n1", "warm"), gib(2));
    EXPECT_EQ(granted(plan, "n1", "read"), gib(2)) << "the job waits until the fill has shrunk";
    EXPECT_EQ(allocation(plan, "job1").target, gib(8));
}

TEST(GrantFills, LetJobsGrowFirst) {
    AllocationView it = view(gib(16), {fill("a", "warm"), job("a", "read")});
    Demand other = waiting(demand(2, {"n1"}, {dataset("shrinks", gib(1))}), 1e6);
    it.demands.push_back(other);
    it.holdings = {held("a", "shrinks", gib(8))};
    const AllocationPlan plan = plan_allocation(it);
    EXPECT_EQ(granted(plan, "n1", "read"), gib(8));
    EXPECT_EQ(granted(plan, "n1", "warm"), Bytes::zero());
}

TEST(GrantFills, TakeNothingFromOtherNamespacesJobs) {
    AllocationView it = view(gib(10), {fill("a", "warm"), job("b", "read")});
    it.quotas = {quota("a", gib(10))};
    AllocationPlan plan = plan_allocation(it);
    EXPECT_EQ(target(plan, "b"), gib(8)) << "b has no quota, and borrows from a";
    EXPECT_EQ(target(plan, "a"), gib(2));
    it.quotas[0].reclaim = ReclaimPolicy::kNever;
    it.quotas.push_back(quota("b", gib(10)));
    it.quotas[1].reclaim = ReclaimPolicy::kNever;
    it.holdings = {held("a", "warm", gib(8))};
    EXPECT_EQ(target(plan_allocation(it), "b"), gib(8));
    it.quotas = {quota("a", gib(2)), quota("b", gib(8))};
    it.quotas[1].reclaim = ReclaimPolicy::kNever;
    EXPECT_EQ(target(plan_allocation(it), "b"), gib(8)) << "b's lent bytes come back from a fill";
}

TEST(GrantFills, StayWithinQuotas) {
    AllocationView it = view(gib(20), {fill("a", "warm"), job("b", "read")});
    it.quotas = {quota("a", gib(3)), quota("b", gib(10))};
    it.quotas[0].borrowing = gib(2);
    EXPECT_EQ(target(plan_allocation(it), "a"), gib(5));
    it.quotas[1] = quota("b", gib(40));
    it.quotas[1].lending = Bytes::zero();
    EXPECT_EQ(target(plan_allocation(it), "a"), gib(3))
        << "b lends no bytes, even if it does not use them";
}

TEST(GrantFills, NominalQuotaComesBeforeBorrowingAndWhatIsWarmedStays) {
    AllocationView it = view(gib(10), {fill("a", "one"), fill("b", "two")});
    EXPECT_NEAR(to_gib(target(plan_allocation(it), "a")), 5, 0.2) << "evenly";
    it.holdings = {held("a", "one", gib(8))};
    EXPECT_EQ(target(plan_allocation(it), "a"), gib(8)) << "no eviction for another warm-up";
    EXPECT_EQ(target(plan_allocation(it), "b"), gib(2));
    it.quotas = {quota("b", gib(8))};
    EXPECT_EQ(target(plan_allocation(it), "b"), gib(8));
}

TEST(GrantFills, AddToTheBytesOfAJobThatWantsFew) {
    Demand reader = waiting(job("a", "d"), 1e6);
    reader.rates->compute_bound = true;
    const AllocationPlan plan = plan_allocation(view(gib(10), {fill("a", "d"), reader}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(8));
}

TEST(GrantFills, FillOnlyThePartThatTheNodeOwns) {
    AllocationView it = view(gib(10), {fill("a", "d", {"n1", "n2"})});
    it.peers = {{"d", {"n1", "n2"}}};
    const AllocationPlan plan = plan_allocation(it);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(4));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(4));
}

TEST(GrantFills, SweepNoIdleBytesThatAnotherNominalQuotaCovers) {
    AllocationView it = view(gib(10), {fill("a", "warm")});
    it.quotas = {quota("a", gib(10)), quota("b", gib(10))};
    it.holdings = {held("b", "idle", gib(8))};
    it.holdings[0].outstanding = Bytes::zero();
    EXPECT_TRUE(plan_allocation(it).sweeps.empty());
    AllocationView reads = it;
    reads.demands = {job("a", "read")};
    EXPECT_EQ(plan_allocation(reads).sweeps.size(), 1U) << "for a job";
    AllocationView own = it;
    own.holdings[0].ns = "a";
    EXPECT_EQ(plan_allocation(own).sweeps.size(), 1U) << "of the same namespace";
    it.quotas[1].nominal = gib(2);
    EXPECT_EQ(plan_allocation(it).sweeps.size(), 1U) << "borrowed";
}

TEST(GrantFills, EndedOneWantsWhatItHas) {
    AllocationView it = view(gib(10), {fill("a", "warm", {"n1", "n2"})});
    it.demands[0].filled = {"n1"};
    it.holdings = {held("a", "warm", gib(3)), held("a", "idle", gib(7))};
    it.holdings[1].outstanding = Bytes::zero();
    const AllocationPlan plan = plan_allocation(it);
    EXPECT_EQ(granted(plan, "n1", "warm"), gib(3));
    EXPECT_EQ(granted(plan, "n2", "warm"), gib(8));
    EXPECT_TRUE(plan.sweeps.empty());
}

TEST(GrantFills, RaiseNothingThatAJobOfTheSameDatasetWants) {
    Demand reader = job("a", "d");
    reader.rates = JobRates{4e6, 3e6, 1, false};  // waits no longer with a quarter of the bytes
    AllocationView it = view(gib(10), {fill("a", "d"), reader, job("b", "read")});
    it.quotas = {quota("a", gib(2)), quota("b", gib(8))};
    it.quotas[1].reclaim = ReclaimPolicy::kNever;
    it.holdings = {held("a", "d", gib(8))};
    EXPECT_EQ(target(plan_allocation(it), "b"), gib(8));
}

TEST(GrantFills, HideNoShortageOfAJobsNode) {
    AllocationView it = view(gib(8), {job("a", "read"), fill("a", "warm", {"n2"})});
    it.nodes[1].capacity = gib(10);
    it.demands[1].datasets[0].total = gib(10);
    it.quotas = {quota("a", gib(10)), quota("b", gib(8))};
    it.quotas[0].borrowing = Bytes::zero();
    it.holdings = {held("b", "idle", gib(8))};
    it.holdings[0].outstanding = Bytes::zero();
    const AllocationPlan plan = plan_allocation(it);
    EXPECT_EQ(allocation(plan, "job1").target, Bytes::zero());
    EXPECT_EQ(plan.sweeps.size(), 1U);
}

TEST(GrantFills, HideNoShortageOfWhatAJobMayBorrow) {
    AllocationView it = view(gib(10), {job("a", "read"), fill("c", "warm")});
    it.quotas = {quota("a", {}), quota("b", {}), quota("c", gib(10))};
    it.quotas[2].lending = Bytes::zero();
    it.holdings = {held("b", "idle", gib(10))};
    it.holdings[0].node = "n2";
    it.holdings[0].outstanding = Bytes::zero();
    EXPECT_EQ(plan_allocation(it).sweeps.size(), 1U);
}

TEST(GrantFills, OneBorrowedByteOpensNoNominalQuota) {
    AllocationView it = view(gib(11), {fill("a", "warm")});
    it.nodes.pop_back();
    it.quotas = {quota("a", gib(10)), quota("b", gib(10))};
    for (const char* uid : {"one", "two", "three"}) {
        it.holdings.push_back(held("b", uid, mib(3500)));
        it.holdings.back().outstanding = Bytes::zero();
    }
    EXPECT_EQ(plan_allocation(it).sweeps.size(), 1U);
}

bool has_sweep(const AllocationPlan& plan, const Sweep& sweep) {
    return std::ranges::find(plan.sweeps, sweep) != plan.sweeps.end();
}

// Fills of datasets that no job reads: jobs' targets and sweeps are exactly the same as without
// them.
TEST(GrantFills, ChangeNoJobsTargetAndNoSweepForAJob) {
    const std::uint64_t seed = test_seed();
    for (std::uint64_t round = 0; round < 3000 && !HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{seed + round, round % 2 == 1};
        AllocationView with = world.view;
        std::erase_if(with.demands, [](const Demand& it) { return it.fill; });
        std::erase_if(with.nodes, [](const PoolNode& it) { return it.pool != "p0"; });
        AllocationView without = with;
        for (std::uint64_t i = 0; i < 3; ++i) {
            world.add_job(90 + i);
            Demand added = world.view.demands.back();
            World::make_fill(added);
            for (DemandDataset& it : added.datasets) {
                it.uid += "-fill" + std::to_string(i);
                for (const PoolNode& node : with.nodes) {
                    with.holdings.push_back(
                        {"p0", node.node, it.uid, {}, Bytes{world.prng.below(9)}});
                }
            }
            with.demands.push_back(std::move(added));
            // Accounts exist in both views.
            without.quotas = with.quotas;
        }
        const AllocationPlan plan = plan_allocation(with);
        const AllocationPlan before = plan_allocation(without);
        for (const JobAllocation& its : before.jobs) {
            EXPECT_EQ(allocation(plan, its.job.name).target, its.target) << its.job.name;
        }
        for (const Sweep& sweep : before.sweeps) {
            EXPECT_TRUE(has_sweep(plan, sweep)) << sweep.node << " " << sweep.dataset_uid;
        }
    }
}

}  // namespace
}  // namespace stoker::control
