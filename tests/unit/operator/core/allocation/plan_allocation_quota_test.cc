// Nominal quotas are reserved before any namespace borrows.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/what_if.h"

namespace stoker::control {
namespace {

constexpr auto kPool = "nvme";

Demand job_of(const std::string& ns, Bytes size, std::vector<std::string> nodes = {"n1"}) {
    Demand job;
    job.job = {ns, "job-" + std::to_string(size.count() >> 30U)};
    job.pool = kPool;
    job.nodes = std::move(nodes);
    job.datasets = {{"train", "data-of-" + ns + "-" + job.job.name, size}};
    job.rates = JobRates{1e9, 0, 1, false};
    return job;
}

// A quota with only nominalQuota set.
QuotaView quota_of(const std::string& ns, Bytes nominal) {
    QuotaView quota{ns, kPool, nominal};
    quota.borrowing = Bytes::unlimited();
    quota.lending = Bytes::unlimited();
    return quota;
}

AllocationView view_of(std::vector<QuotaView> quotas, std::vector<Demand> demands) {
    AllocationView view;
    view.nodes = {{kPool, "n1", gib(100)}};
    view.pools = {{kPool}};
    view.quotas = std::move(quotas);
    view.demands = std::move(demands);
    view.step = mib(64);
    return view;
}

Bytes granted(const AllocationPlan& plan, const std::string& ns) {
    Bytes result{};
    for (const JobAllocation& job : plan.jobs) {
        result += job.job.ns == ns ? job.granted : Bytes::zero();
    }
    return result;
}

const JobAllocation& of(const AllocationPlan& plan, const std::string& ns) {
    return *std::ranges::find_if(plan.jobs, [&](const auto& job) { return job.job.ns == ns; });
}

AllocationPlan at_rest(const AllocationView& view) {
    const Outcome outcome = settle(view);
    EXPECT_TRUE(outcome.at_rest);
    return outcome.plan;
}

// The squatter's bytes have more value, it requests them as a minimum, and it holds them all
// already.
AllocationView squatter_and_team() {
    Demand squatter = job_of("squatter", gib(100));
    squatter.min_bytes = gib(100);
    squatter.priority = 9;
    squatter.rates->ingest = 1e12;
    AllocationView view = view_of({quota_of("team", gib(80))}, {squatter, job_of("team", gib(90))});
    view.holdings = {
        {kPool, "n1", squatter.datasets[0].uid, gib(100), gib(100), gib(100), "squatter"}};
    return view;
}

TEST(PlanAllocationQuota, NamespaceWithoutQuotaTakesNoGuaranteedBytes) {
    const AllocationView view = squatter_and_team();
    const AllocationPlan first = plan_allocation(view);
    EXPECT_EQ(granted(first, "squatter"), gib(20));
    EXPECT_EQ(granted(first, "team"), Bytes::zero())
        << "team waits until the squatter has returned bytes";
    ASSERT_EQ(first.reclaims.size(), 1U);
    EXPECT_EQ(first.reclaims[0].ns, "squatter");
    const AllocationPlan plan = at_rest(view);
    EXPECT_EQ(granted(plan, "team"), gib(80));
    EXPECT_EQ(granted(plan, "squatter"), gib(20));
    EXPECT_EQ(of(plan, "squatter").minimum, gib(100));
    EXPECT_EQ(of(plan, "squatter").guaranteed, Bytes::zero());
    EXPECT_EQ(of(plan, "squatter").reason, AllocationReason::kQuotaExhausted);
}

TEST(PlanAllocationQuota, NamespaceWithoutQuotaGetsIdleBytes) {
    AllocationView view = squatter_and_team();
    view.demands.pop_back();
    EXPECT_EQ(granted(at_rest(view), "squatter"), gib(100));
    view.quotas[0].lending = gib(30);
    EXPECT_EQ(granted(at_rest(view), "squatter"), gib(50)) << "20Gi are in no quota, 30Gi are lent";
}

TEST(PlanAllocationQuota, MinimumWithoutQuotaGetsIdleBytesOnly) {
    Demand idle = job_of("squatter", gib(60));
    idle.rates->compute_bound = true;
    idle.min_bytes = gib(60);
    AllocationView view = view_of({}, {idle});
    EXPECT_EQ(granted(at_rest(view), "squatter"), gib(60));
    view.demands.push_back(job_of("other", gib(70)));
    const AllocationPlan plan = at_rest(view);
    EXPECT_EQ(granted(plan, "other"), gib(70));
    EXPECT_EQ(granted(plan, "squatter"), gib(30));
}

TEST(PlanAllocationQuota, DefaultQuotaOfThePoolApplies) {
    AllocationView view = squatter_and_team();
    view.pools[0].default_quota = {gib(30), Bytes::zero(), Bytes::zero()};
    view.quotas[0].nominal = gib(60);
    AllocationPlan plan = at_rest(view);
    EXPECT_EQ(granted(plan, "squatter"), gib(30)) << "the default quota forbids borrowing";
    EXPECT_EQ(of(plan, "squatter").guaranteed, gib(30));
    EXPECT_EQ(granted(plan, "team"), gib(70)) << "10 GiB are nobody's";
    view.demands.pop_back();
    view.pools[0].default_quota.borrowing = gib(5);
    EXPECT_EQ(granted(at_rest(view), "squatter"), gib(35));
}

TEST(PlanAllocationQuota, EachNamespaceHasItsOwnDefaultQuota) {
    AllocationView view =
        view_of({}, {job_of("a", gib(90)), job_of("b", gib(90)), job_of("c", gib(90))});
    view.pools[0].default_quota.nominal = gib(20);
    view.demands[0].rates->ingest = 1e12;
    const AllocationPlan plan = at_rest(view);
    EXPECT_EQ(granted(plan, "a"), gib(60));
    EXPECT_EQ(granted(plan, "b"), gib(20));
    EXPECT_EQ(granted(plan, "c"), gib(20));
}

TEST(PlanAllocationQuota, WithoutQuotasMaximizesSavingsAndReportsNoBorrowing) {
    AllocationView view = view_of({}, {job_of("a", gib(90)), job_of("b", gib(90))});
    view.demands[0].rates->ingest = 1e12;
    const AllocationPlan plan = at_rest(view);
    EXPECT_EQ(granted(plan, "a"), gib(90));
    EXPECT_EQ(of(plan, "a").reason, AllocationReason::kGranted);
    EXPECT_EQ(of(plan, "b").reason, AllocationReason::kLowerMarginalBenefit);
}

TEST(PlanAllocationQuota, MovesAGrantToAnotherNodeSoThatBothNamespacesGetTheirQuotas) {
    AllocationView view = view_of(
        {quota_of("a", gib(100)), quota_of("b", gib(100))},
        {job_of("a", gib(100)), job_of("a", gib(99), {"n2"}), job_of("b", gib(100))});
    view.nodes.push_back({kPool, "n2", gib(100)});
    view.demands[0].rates->ingest = 1e12;  // most valuable, and on b's only node
    const AllocationPlan plan = at_rest(view);
    EXPECT_EQ(granted(plan, "b"), gib(99));
    EXPECT_EQ(granted(plan, "a"), gib(100));
}

TEST(PlanAllocationQuota, DividesASmallNodeInProportionToQuotas) {
    AllocationView view = view_of(
        {quota_of("a", gib(240)), quota_of("b", gib(80))},
        {job_of("a", gib(300)), job_of("b", gib(300))});
    view.demands[1].rates->ingest = 1e12;
    const AllocationPlan plan = at_rest(view);
    EXPECT_GE(granted(plan, "a"), gib(71));
    EXPECT_GE(granted(plan, "b"), gib(23));
}

TEST(PlanAllocationQuota, DoesNotReserveUselessBytes) {
    Demand owner = job_of("owner", gib(100));
    owner.rates = {100e6, 75e6, 1, false};  // a quarter of the dataset is enough
    AllocationView view =
        view_of({quota_of("owner", gib(100))}, {owner, job_of("other", gib(100))});
    view.holdings = {{kPool, "n1", owner.datasets[0].uid, gib(100), gib(100), gib(100), "owner"}};
    const AllocationPlan plan = at_rest(view);
    EXPECT_GE(granted(plan, "owner"), gib(25));
    EXPECT_GE(granted(plan, "other"), gib(74));
}

TEST(PlanAllocationQuota, EveryObjectiveReservesNominalQuotas) {
    for (const Objective objective :
         {Objective::kThroughput, Objective::kMaxMin, Objective::kCost, Objective::kEven}) {
        AllocationView view = squatter_and_team();
        view.pools[0].objective = objective;
        EXPECT_EQ(granted(at_rest(view), "team"), gib(80)) << static_cast<int>(objective);
    }
}

TEST(PlanAllocationQuota, SweepsIdleBytesBeyondAQuotaIfAnotherNamespaceNeedsItsNominalQuota) {
    AllocationView view = view_of(
        {quota_of("team", gib(100)), quota_of("away", gib(100))}, {job_of("team", gib(100))});
    view.nodes.push_back({kPool, "n2", gib(100)});
    view.quotas[1].lending = Bytes::zero();
    Holding idle{kPool, "n2", "left", gib(60), {}, {}, "squatter"};
    view.holdings = {idle};
    const AllocationPlan first = plan_allocation(view);
    ASSERT_EQ(first.sweeps.size(), 1U);
    EXPECT_EQ(first.sweeps[0].dataset_uid, "left");
    EXPECT_EQ(granted(at_rest(view), "team"), gib(100));
}

}  // namespace
}  // namespace stoker::control
