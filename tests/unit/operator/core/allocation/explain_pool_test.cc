#include "operator/core/allocation/explain_pool.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/planned_cluster.h"

namespace stoker::control {
namespace {

TEST(ExplainPool, ReportsWhenNoPodIsOnANodeOfThePool) {
    const AllocationPlan plan = plan_allocation(view(
        gib(10),
        {demand(1, {}, {dataset("d", gib(1))}), demand(2, {"elsewhere"}, {dataset("e", gib(1))})}));
    EXPECT_TRUE(plan.grants.empty());
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kWaitingForPods);
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kWaitingForPods);
}

TEST(ExplainPool, ReportsReclaimedOnlyForBorrowedBytes) {
    const auto holding = [](const std::string& uid, Bytes bytes) {
        return Holding{kPool, "n1", uid, bytes, bytes, bytes};
    };
    Demand other = waiting(demand(3, {"n1"}, {dataset("f", gib(4))}), 1e6);
    other.job.ns = "b";
    AllocationView cluster = view(
        gib(6),
        {waiting(demand(1, {"n1"}, {dataset("d", gib(4))}), 1e6),
         waiting(demand(2, {"n1"}, {dataset("e", gib(4))}), 2e6)});
    cluster.quotas = {{"a", kPool, gib(4)}, {"b", kPool, gib(2)}};
    cluster.quotas[0].borrowing = gib(2);
    cluster.quotas[1].lending = gib(2);
    cluster.holdings = {holding("d", gib(4)), holding("e", gib(2))};
    AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(2));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kQuotaExhausted);
    EXPECT_EQ(
        allocation(plan, "job1").message,
        "2Gi of 4Gi granted: the datasets of namespace a may hold 4Gi and 2Gi that others leave in "
        "pool "
        "nvme, and all of it is given out.");
    cluster.holdings = {holding("d", gib(2)), holding("e", gib(4))};
    cluster.demands.push_back(other);
    plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), Bytes::zero());
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kReclaimed);
    EXPECT_EQ(allocation(plan, "job2").reason, AllocationReason::kGranted);
}

TEST(ExplainPool, DoesNotReportPoolFullIfOthersMustReturnOnlyAFewMoreBytes) {
    AllocationView cluster = view(
        mib(100),
        {demand(1, {"n1"}, {dataset("d", mib(90))}), demand(2, {"n1"}, {dataset("e", mib(10))})});
    cluster.holdings = {{kPool, "n1", "e", mib(11), mib(11), mib(11)}};
    AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), mib(89));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kGranted);
    cluster.holdings = {{kPool, "n1", "e", mib(30), mib(30), mib(30)}};
    plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), mib(70));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kPoolFull);
    EXPECT_EQ(
        allocation(plan, "job1").message,
        "70Mi of 90Mi granted: 20Mi more follow when others have given them back.");
}

TEST(ExplainPool, ReportsAPoolWithoutNodes) {
    AllocationView cluster = view(gib(10), {demand(1, {"n1"}, {dataset("d", gib(4))})});
    cluster.nodes.clear();
    cluster.quotas = {{"a", kPool, gib(4)}};
    cluster.quotas[0].lending = gib(4);
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_TRUE(plan.grants.empty());
    EXPECT_EQ(allocation(plan, "job1").message, "Pool nvme has no node.");
    EXPECT_EQ(plan.quotas.at(0).used, Bytes::zero());
    EXPECT_EQ(plan.quotas.at(0).lent, Bytes::zero());
}

}  // namespace
}  // namespace stoker::control
