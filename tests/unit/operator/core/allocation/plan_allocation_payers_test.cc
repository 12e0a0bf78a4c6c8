// Who pays for bytes that several namespaces read, when those that read them come and go.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"

namespace stoker::control {
namespace {

using Names = std::vector<std::string>;

constexpr auto kPool = "nvme";

Demand job_of(const std::string& ns, const std::string& uid, Bytes size) {
    Demand job;
    job.job = {ns, "reads-" + uid};
    job.pool = kPool;
    job.nodes = {"n1"};
    job.datasets = {{"train", uid, size}};
    job.rates = JobRates{1e9, 0, 1, false};
    return job;
}

Holding held(const std::string& uid, Bytes bytes, Names payers) {
    Holding holding{kPool, "n1", uid, bytes, bytes, bytes};
    holding.ns = "owner";
    holding.payers = std::move(payers);
    return holding;
}

// A node with room for everything.
AllocationView view_of(std::vector<QuotaView> quotas) {
    AllocationView view;
    view.nodes = {{kPool, "n1", gib(100)}};
    view.quotas = std::move(quotas);
    view.step = mib(64);
    return view;
}

// 12 GiB, of which namespace visitor, which reads something else now, paid half.
AllocationView visitor_has_left(Bytes nominal_of_owner, Names payers = {"owner", "visitor"}) {
    AllocationView view = view_of({{"owner", kPool, nominal_of_owner}, {"visitor", kPool, gib(6)}});
    view.demands = {job_of("owner", "shared", gib(12)), job_of("visitor", "own", gib(6))};
    view.holdings = {held("shared", gib(12), std::move(payers))};
    return view;
}

Bytes granted(const AllocationPlan& plan, const std::string& uid) {
    const auto found = std::ranges::find_if(
        plan.grants, [&](const auto& grant) { return grant.dataset_uid == uid; });
    return found == plan.grants.end() ? Bytes::unlimited() : found->resident_bytes;
}

Names payers(const AllocationPlan& plan, const std::string& uid) {
    const auto found = std::ranges::find_if(
        plan.payers, [&](const auto& place) { return place.dataset_uid == uid; });
    return found == plan.payers.end() ? Names{"nobody says"} : found->payers;
}

Bytes used(const AllocationPlan& plan, const std::string& ns) {
    const auto found =
        std::ranges::find_if(plan.quotas, [&](const auto& quota) { return quota.ns == ns; });
    return found == plan.quotas.end() ? Bytes::unlimited() : found->used;
}

// As it is when the sidecars have done what the plan says.
void carry_out(const AllocationPlan& plan, AllocationView& view) {
    view.holdings.clear();
    for (const AgentGrant& grant : plan.grants) {
        view.holdings.push_back(
            held(grant.dataset_uid, grant.resident_bytes, payers(plan, grant.dataset_uid)));
    }
}

TEST(PlanAllocationPayers, WhoLeavesPaysUntilTheBytesHaveShrunkToWhatTheOthersCanPayFor) {
    AllocationView view = visitor_has_left(gib(6));
    AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "shared"), gib(6));
    EXPECT_EQ(payers(plan, "shared"), (Names{"owner", "visitor"}));
    EXPECT_EQ(granted(plan, "own"), Bytes::zero()) << "its quota pays for what is still there";
    EXPECT_EQ(used(plan, "visitor"), gib(6));
    EXPECT_EQ(used(plan, "owner"), gib(6));

    carry_out(plan, view);
    plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "shared"), gib(6));
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(granted(plan, "own"), gib(6));
    EXPECT_EQ(used(plan, "visitor"), gib(6));
}

TEST(PlanAllocationPayers, APromiseThatMayStillArriveIsPaidForLikeWhatIsThere) {
    AllocationView view = visitor_has_left(gib(6));
    view.holdings[0].resident = gib(2);
    view.holdings[0].granted = gib(2);
    view.holdings[0].outstanding = gib(10);
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), (Names{"owner", "visitor"}));
    EXPECT_EQ(granted(plan, "shared"), gib(2)) << "only who pays for all of it may grow";
    EXPECT_EQ(granted(plan, "own"), gib(1));
}

TEST(PlanAllocationPayers, WhoLeavesPaysNoLongerThanTheOthersCannot) {
    const AllocationPlan plan = plan_allocation(visitor_has_left(gib(12)));
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(granted(plan, "shared"), gib(12));
    EXPECT_EQ(granted(plan, "own"), gib(6));
}

TEST(PlanAllocationPayers, ANamespaceWithoutAQuotaKeepsItsPartToo) {
    AllocationView view = visitor_has_left(gib(6));
    view.quotas.pop_back();
    AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(used(plan, "owner"), gib(6)) << "the rest was never its to pay";
    carry_out(plan, view);
    plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(used(plan, "owner"), gib(6));
}

TEST(PlanAllocationPayers, AGuaranteedMinimumIsChargedInPartsLikeEverythingElse) {
    AllocationView view = view_of({{"owner", kPool, gib(6)}, {"rich", kPool, gib(50)}});
    view.demands = {
        job_of("owner", "shared", gib(12)),
        job_of("rich", "shared", gib(12)),
        job_of("owner", "own", gib(6))};
    view.demands[0].min_bytes = gib(10);
    view.demands[2].rates->ingest = 1e12;  // every byte of it is worth more
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "shared"), gib(10)) << "of the owner's 6 GiB it takes 5";
    EXPECT_EQ(granted(plan, "own"), gib(1));
}

TEST(PlanAllocationPayers, WhoJoinsDoesNotPayWhatItCannot) {
    AllocationView view = view_of({{"owner", kPool, gib(12)}, {"visitor", kPool, gib(2)}});
    view.demands = {job_of("owner", "shared", gib(12)), job_of("visitor", "shared", gib(12))};
    view.holdings = {held("shared", gib(12), {"owner"})};
    AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(used(plan, "visitor"), Bytes::zero());
    EXPECT_EQ(granted(plan, "shared"), gib(4)) << "it holds the others to what it can pay";
    carry_out(plan, view);
    plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), (Names{"owner", "visitor"}));
    EXPECT_EQ(used(plan, "visitor"), gib(2));
}

// Neither could be handed over alone.
TEST(PlanAllocationPayers, TwoThatJoinEachOtherChangeTogether) {
    AllocationView view = view_of({{"a", kPool, gib(6)}, {"b", kPool, gib(6)}});
    view.demands = {
        job_of("a", "x", gib(6)),
        job_of("b", "x", gib(6)),
        job_of("a", "y", gib(6)),
        job_of("b", "y", gib(6))};
    view.holdings = {held("x", gib(6), {"a"}), held("y", gib(6), {"b"})};
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "x"), (Names{"a", "b"}));
    EXPECT_EQ(payers(plan, "y"), (Names{"a", "b"}));
    EXPECT_EQ(granted(plan, "x"), gib(6));
    EXPECT_EQ(granted(plan, "y"), gib(6));
}

// One that cannot be handed over yet holds up no other.
TEST(PlanAllocationPayers, WhatCanBeHandedOverIsWhereSomethingElseCannot) {
    AllocationView view = visitor_has_left(gib(6));
    view.quotas.push_back({"rich", kPool, gib(50)});
    view.demands.push_back(job_of("rich", "other", gib(8)));
    view.holdings.push_back(held("other", gib(8), {"rich", "visitor"}));
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "other"), Names{"rich"});
    EXPECT_EQ(payers(plan, "shared"), (Names{"owner", "visitor"}));
}

// A new leader: the readers it finds cannot have paid for all that is there, and whoever did must
// not get more meanwhile.
TEST(PlanAllocationPayers, NobodyGrowsWhileItIsNotKnownWhoPays) {
    AllocationView view = visitor_has_left(gib(6), {});
    AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{});
    EXPECT_EQ(granted(plan, "shared"), gib(6));
    EXPECT_EQ(granted(plan, "own"), Bytes::zero());

    carry_out(plan, view);
    plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(granted(plan, "own"), gib(6));
}

TEST(PlanAllocationPayers, NobodyWaitsForASidecarWhoseGraceIsOver) {
    AllocationView view = visitor_has_left(gib(6), {});
    view.held_back = {{kPool, "owner", "Pod p keeps what it must give back."}};
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(granted(plan, "own"), gib(6));
}

TEST(PlanAllocationPayers, AnUnsettledOperatorSaysOfNothingWhoPays) {
    AllocationView view = visitor_has_left(gib(50), {});
    view.settled = false;
    EXPECT_EQ(payers(plan_allocation(view), "shared"), Names{});
    view.settled = true;
    EXPECT_EQ(payers(plan_allocation(view), "shared"), Names{"owner"});
}

TEST(PlanAllocationPayers, IdleBytesThatTheirNamespaceCannotPayForAreSweptAtTheReadersCost) {
    AllocationView view = view_of({{"owner", kPool, gib(6)}, {"visitor", kPool, gib(12)}});
    view.demands = {job_of("visitor", "own", gib(12))};
    view.holdings = {held("shared", gib(12), {"visitor"})};
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{"visitor"});
    EXPECT_EQ(used(plan, "owner"), Bytes::zero());
    EXPECT_EQ(granted(plan, "own"), Bytes::zero());
    ASSERT_EQ(plan.sweeps.size(), 1U);
    EXPECT_EQ(plan.sweeps.front().dataset_uid, "shared");
}

TEST(PlanAllocationPayers, IdleBytesThatTheirNamespaceCanPayForStay) {
    AllocationView view = view_of({{"owner", kPool, gib(12)}, {"visitor", kPool, gib(12)}});
    view.demands = {job_of("visitor", "own", gib(12))};
    view.holdings = {held("shared", gib(12), {"visitor"})};
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(payers(plan, "shared"), Names{"owner"});
    EXPECT_EQ(used(plan, "owner"), gib(12));
    EXPECT_EQ(granted(plan, "own"), gib(12));
    EXPECT_TRUE(plan.sweeps.empty());
}

}  // namespace
}  // namespace stoker::control
