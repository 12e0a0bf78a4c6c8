#include "operator/core/plan_grants.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

constexpr auto kPool = "nvme";

DemandDataset dataset(const std::string& uid, std::optional<Bytes> total) {
    return {"train", uid, total};
}

// A job of namespace "a" in mode Auto, older than those with a larger number.
Demand demand(int number, std::vector<std::string> nodes, std::vector<DemandDataset> datasets) {
    Demand result;
    result.job = {"a", "job" + std::to_string(number)};
    result.created_at = WallTime{std::chrono::seconds{number}};
    result.pool = kPool;
    result.nodes = std::move(nodes);
    result.datasets = std::move(datasets);
    return result;
}

AllocationView view(Bytes capacity, std::vector<Demand> demands) {
    AllocationView result;
    result.nodes = {{kPool, "n1", capacity}, {kPool, "n2", capacity}};
    result.demands = std::move(demands);
    return result;
}

Bytes granted(const AllocationPlan& plan, const std::string& node, const std::string& uid) {
    for (const AgentGrant& grant : plan.grants) {
        if (grant.node == node && grant.dataset_uid == uid) {
            return grant.resident_bytes;
        }
    }
    ADD_FAILURE() << "no grant for " << uid << " on " << node;
    return {};
}

const JobAllocation& allocation(const AllocationPlan& plan, const std::string& name) {
    for (const JobAllocation& job : plan.jobs) {
        if (job.job.name == name) {
            return job;
        }
    }
    throw std::runtime_error("no allocation for " + name);
}

TEST(PlanGrants, GivesAnAutoJobItsWholeDatasetOnEachOfItsNodes) {
    const AllocationPlan plan =
        plan_grants(view(gib(10), {demand(1, {"n1", "n2"}, {dataset("d", gib(3))})}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(3));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(3));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kGranted);
    EXPECT_EQ(allocation(plan, "job1").granted, gib(6));
    EXPECT_EQ(plan.grants.at(0).reason, "Granted");
    EXPECT_EQ(plan.grants.at(0).valid_seconds, 60U);
}

TEST(PlanGrants, DividesMaxBytesOverTheNodes) {
    Demand job = demand(1, {"n1", "n2"}, {dataset("d", gib(3))});
    job.max_bytes = gib(4);
    const AllocationPlan plan = plan_grants(view(gib(10), {job}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").wanted, gib(4));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kGranted);
}

TEST(PlanGrants, GivesAFixedJobExactlyWhatItAsksForWhateverTheDatasetHas) {
    Demand job = demand(1, {"n1"}, {dataset("big", gib(9)), dataset("small", gib(1))});
    job.mode = CacheMode::kFixed;
    job.max_bytes = gib(6);
    const AllocationPlan six = plan_grants(view(gib(100), {job}));
    EXPECT_EQ(granted(six, "n1", "big"), gib(5));
    EXPECT_EQ(granted(six, "n1", "small"), gib(1));
    job.max_bytes = gib(14);
    EXPECT_EQ(allocation(plan_grants(view(gib(100), {job})), "job1").granted, gib(14));
    job.datasets = {dataset("unknown", std::nullopt)};
    const AllocationPlan unknown = plan_grants(view(gib(100), {job}));
    EXPECT_EQ(granted(unknown, "n1", "unknown"), gib(14));
    EXPECT_EQ(allocation(unknown, "job1").reason, AllocationReason::kGranted);
}

TEST(PlanGrants, WaitsForTheSizeOfADatasetInModeAuto) {
    const AllocationPlan plan =
        plan_grants(view(gib(10), {demand(1, {"n1"}, {dataset("d", std::nullopt)})}));
    EXPECT_EQ(granted(plan, "n1", "d"), Bytes::zero());
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kProfiling);
}

TEST(PlanGrants, SaysWhenNoPodIsOnANodeOfThePool) {
    const AllocationPlan plan = plan_grants(view(
        gib(10),
        {demand(1, {}, {dataset("d", gib(1))}), demand(2, {"elsewhere"}, {dataset("e", gib(1))})}));
    EXPECT_TRUE(plan.grants.empty());
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kWaitingForPods);
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kWaitingForPods);
}

TEST(PlanGrants, CapsAtTheQuotaInEqualPartsAndNamesIt) {
    AllocationView v = view(gib(10), {demand(1, {"n1", "n2"}, {dataset("d", gib(3))})});
    v.quotas = {{"a", kPool, gib(4)}};
    const AllocationPlan plan = plan_grants(v);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kQuotaExhausted);
    EXPECT_EQ(
        allocation(plan, "job1").message,
        "4Gi of 6Gi granted: the jobs of namespace a may hold 4Gi in pool nvme, and all of it is "
        "given out.");
}

TEST(PlanGrants, DoesNotCountAQuotaOfAnotherPoolOrNamespace) {
    AllocationView v = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(3))})});
    v.quotas = {{"a", "other", Bytes::zero()}, {"b", kPool, Bytes::zero()}};
    EXPECT_EQ(granted(plan_grants(v), "n1", "d"), gib(3));
}

TEST(PlanGrants, ServesTheOlderJobFirstWhenANodeIsFull) {
    const AllocationPlan plan = plan_grants(view(
        gib(4),
        {demand(2, {"n1"}, {dataset("young", gib(3))}),
         demand(1, {"n1"}, {dataset("old", gib(3))})}));
    EXPECT_EQ(granted(plan, "n1", "old"), gib(3));
    EXPECT_EQ(granted(plan, "n1", "young"), gib(1));
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kPoolFull);
    EXPECT_EQ(
        allocation(plan, "job2").message,
        "1Gi of 3Gi granted: the job's nodes have no more room in pool nvme.");
}

TEST(PlanGrants, GivesMinimumsBeforeWishes) {
    Demand young = demand(2, {"n1"}, {dataset("young", gib(3))});
    young.min_bytes = gib(2);
    const AllocationPlan plan =
        plan_grants(view(gib(4), {demand(1, {"n1"}, {dataset("old", gib(3))}), young}));
    EXPECT_EQ(granted(plan, "n1", "young"), gib(2));
    EXPECT_EQ(granted(plan, "n1", "old"), gib(2));
}

TEST(PlanGrants, GrantsASharedDatasetOnceAndChargesItsUsersEvenly) {
    Demand second = demand(2, {"n1"}, {dataset("d", gib(4))});
    second.max_bytes = gib(1);
    AllocationView v = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(4))}), second});
    v.quotas = {{"a", kPool, gib(4)}};
    const AllocationPlan plan = plan_grants(v);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(4));
    EXPECT_EQ(plan.grants.size(), 1U);
    EXPECT_EQ(plan.charges.at(0).charged, gib(2));
    EXPECT_EQ(plan.charges.at(1).charged, gib(2));
    EXPECT_EQ(allocation(plan, "job2").granted, gib(1));
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kGranted);
}

TEST(PlanGrants, CountsADatasetUnderTwoNamesOnce) {
    const AllocationPlan plan = plan_grants(
        view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(4)), dataset("d", gib(4))})}));
    EXPECT_EQ(granted(plan, "n1", "d"), gib(4));
    EXPECT_EQ(allocation(plan, "job1").granted, gib(4));
}

TEST(PlanGrants, KeepsItsHandsOffWhatIdleDatasetsHoldOnTheNode) {
    AllocationView v = view(gib(4), {demand(1, {"n1"}, {dataset("d", gib(3))})});
    v.holdings = {{kPool, "n1", "idle", gib(2), Bytes::zero()}};
    const AllocationPlan plan = plan_grants(v);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kPoolFull);
}

TEST(PlanGrants, LetsADatasetShrinkBeforeAnotherGrows) {
    Demand old = demand(1, {"n1"}, {dataset("old", gib(4))});
    old.max_bytes = gib(1);
    AllocationView v = view(gib(4), {old, demand(2, {"n1"}, {dataset("young", gib(4))})});
    v.holdings = {{kPool, "n1", "old", gib(4), gib(4)}};
    const AllocationPlan first = plan_grants(v);
    EXPECT_EQ(granted(first, "n1", "old"), gib(1));
    EXPECT_EQ(granted(first, "n1", "young"), Bytes::zero());
    v.holdings = {{kPool, "n1", "old", gib(1), gib(1)}};
    EXPECT_EQ(granted(plan_grants(v), "n1", "young"), gib(3));
}

TEST(PlanGrants, HoldsAndDrainsByStopPolicy) {
    AllocationView v = view(
        gib(10),
        {demand(1, {"n1"}, {dataset("d", gib(4))}), demand(2, {"n1"}, {dataset("e", gib(4))})});
    v.holdings = {{kPool, "n1", "d", gib(1), gib(2)}};
    v.pools = {{kPool, StopPolicy::kHold}};
    const AllocationPlan held = plan_grants(v);
    EXPECT_EQ(granted(held, "n1", "d"), gib(2));
    EXPECT_EQ(granted(held, "n1", "e"), Bytes::zero());
    EXPECT_EQ(allocation(held, "job1").reason, AllocationReason::kStopped);
    v.pools.clear();
    v.quotas = {{"a", kPool, gib(100), StopPolicy::kHoldAndDrain}};
    EXPECT_EQ(granted(plan_grants(v), "n1", "d"), Bytes::zero());
}

TEST(PlanGrants, PlansNothingForNothing) {
    EXPECT_EQ(plan_grants({}), AllocationPlan{});
}

}  // namespace
}  // namespace stoker::control
