// A dataset's namespace is charged for its bytes, for all jobs that read them.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"

namespace stoker::control {
namespace {

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

// A demand that reads a dataset of namespace "owner".
Demand guest_of(const std::string& ns, const std::string& uid, Bytes size) {
    Demand job = job_of(ns, uid, size);
    job.datasets[0].ns = "owner";
    return job;
}

// A node with room for everything, and quotas that neither borrow nor lend.
AllocationView view_of(std::vector<QuotaView> quotas, std::vector<Demand> demands) {
    AllocationView view;
    view.nodes = {{kPool, "n1", gib(100)}};
    view.quotas = std::move(quotas);
    view.demands = std::move(demands);
    view.step = mib(64);
    return view;
}

Bytes granted(const AllocationPlan& plan, const std::string& uid) {
    const auto found = std::ranges::find(plan.grants, uid, &Grant::dataset_uid);
    return found == plan.grants.end() ? Bytes::unlimited() : found->resident_bytes;
}

const JobAllocation& of(const AllocationPlan& plan, const std::string& ns) {
    return *std::ranges::find_if(plan.jobs, [&](const auto& job) { return job.job.ns == ns; });
}

Bytes used(const AllocationPlan& plan, const std::string& ns) {
    const auto found = std::ranges::find(plan.quotas, ns, &QuotaUse::ns);
    return found == plan.quotas.end() ? Bytes::unlimited() : found->used;
}

TEST(PlanAllocationOwner, OwnersQuotaLimitsTheDataset) {
    const AllocationPlan plan = plan_allocation(view_of(
        {{"guest", kPool, gib(50)}, {"owner", kPool, gib(6)}},
        {guest_of("guest", "shared", gib(12))}));
    EXPECT_EQ(granted(plan, "shared"), gib(6));
    EXPECT_EQ(used(plan, "owner"), gib(6));
    EXPECT_EQ(used(plan, "guest"), Bytes::zero());
    EXPECT_EQ(of(plan, "guest").reason, AllocationReason::kQuotaExhausted);
    EXPECT_EQ(
        of(plan, "guest").message,
        "6Gi of 12Gi granted: namespace owner, the dataset's owner, may hold no more in pool "
        "nvme.");
}

TEST(PlanAllocationOwner, GuestNeedsNoQuota) {
    const AllocationPlan plan = plan_allocation(view_of(
        {{"guest", kPool, Bytes::zero()}, {"owner", kPool, gib(12)}},
        {guest_of("guest", "shared", gib(12))}));
    EXPECT_EQ(granted(plan, "shared"), gib(12));
    EXPECT_EQ(of(plan, "guest").reason, AllocationReason::kGranted);
}

TEST(PlanAllocationOwner, ChargesOnlyTheOwnersJobs) {
    const AllocationPlan plan = plan_allocation(view_of(
        {{"owner", kPool, gib(12)}},
        {job_of("owner", "shared", gib(12)), guest_of("guest", "shared", gib(12))}));
    ASSERT_EQ(plan.charges.size(), 2U);
    EXPECT_EQ(plan.charges[0].job.ns, "guest");
    EXPECT_EQ(plan.charges[0].charged, Bytes::zero());
    EXPECT_EQ(plan.charges[1].charged, gib(12));
}

TEST(PlanAllocationOwner, SumsSavingsOverAllReaders) {
    AllocationView view = view_of(
        {{"owner", kPool, gib(12)}},
        {job_of("owner", "own", gib(12)), guest_of("a", "shared", gib(12))});
    view.demands[0].rates->ingest = 1.5e9;
    EXPECT_EQ(granted(plan_allocation(view), "own"), gib(12));
    view.demands.push_back(guest_of("b", "shared", gib(12)));
    EXPECT_EQ(granted(plan_allocation(view), "shared"), gib(12));
}

TEST(PlanAllocationOwner, GuestsComingAndGoingMovesNoBytes) {
    AllocationView view = view_of(
        {{"guest", kPool, gib(1)}, {"owner", kPool, gib(6)}},
        {job_of("owner", "shared", gib(12)), guest_of("guest", "shared", gib(12))});
    view.holdings = {{kPool, "n1", "shared", gib(6), gib(6), gib(6), "owner"}};
    EXPECT_EQ(granted(plan_allocation(view), "shared"), gib(6));
    view.demands.pop_back();
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "shared"), gib(6));
    EXPECT_TRUE(plan.reclaims.empty());
}

TEST(PlanAllocationOwner, ChargesIdleBytesToTheOwner) {
    AllocationView view = view_of(
        {{"guest", kPool, gib(12)}, {"owner", kPool, gib(12)}}, {job_of("guest", "own", gib(12))});
    view.holdings = {{kPool, "n1", "shared", gib(8), {}, {}, "owner"}};
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(used(plan, "owner"), gib(8));
    EXPECT_EQ(used(plan, "guest"), gib(12));
    EXPECT_TRUE(plan.sweeps.empty());
}

TEST(PlanAllocationOwner, GuaranteesGuestMinimumWithinOwnersQuota) {
    AllocationView view = view_of(
        {{"guest", kPool, gib(90)}, {"owner", kPool, gib(6)}},
        {guest_of("guest", "shared", gib(12)), job_of("other", "theirs", gib(100))});
    view.demands[0].min_bytes = gib(10);
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "shared"), gib(6));
    EXPECT_EQ(of(plan, "guest").minimum, gib(10));
    EXPECT_EQ(of(plan, "guest").guaranteed, gib(6));
}

TEST(PlanAllocationOwner, OwnersMinimumsPrecedeGuests) {
    AllocationView view = view_of(
        {{"owner", kPool, gib(6)}},
        {guest_of("guest", "shared", gib(12)), job_of("owner", "own", gib(12))});
    view.demands[0].min_bytes = gib(12);
    view.demands[0].priority = 7;
    view.demands[0].rates->ingest = 1e12;
    view.demands[1].min_bytes = gib(4);
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "own"), gib(4));
    EXPECT_EQ(granted(plan, "shared"), gib(2));
}

TEST(PlanAllocationOwner, GuestMinimumTakesNoGuaranteedBytes) {
    AllocationView view = view_of(
        {{"team", kPool, gib(80)}},
        {guest_of("guest", "shared", gib(100)), job_of("team", "theirs", gib(80))});
    view.demands[0].min_bytes = gib(100);
    view.demands[0].rates->ingest = 1e12;
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(granted(plan, "theirs"), gib(80));
    EXPECT_EQ(granted(plan, "shared"), gib(20));
    EXPECT_EQ(of(plan, "guest").guaranteed, Bytes::zero());
}

TEST(PlanAllocationOwner, GuestsObeyTheStopPolicyOfTheDatasetsNamespaceNotTheirOwn) {
    AllocationView view = view_of(
        {{"owner", kPool, gib(12), StopPolicy::kHoldAndDrain}},
        {guest_of("guest", "shared", gib(12))});
    EXPECT_EQ(granted(plan_allocation(view), "shared"), Bytes::zero());
    EXPECT_EQ(of(plan_allocation(view), "guest").reason, AllocationReason::kStopped);
    view.quotas = {{"guest", kPool, gib(12), StopPolicy::kHoldAndDrain}};
    EXPECT_EQ(granted(plan_allocation(view), "shared"), gib(12));
}

}  // namespace
}  // namespace stoker::control
