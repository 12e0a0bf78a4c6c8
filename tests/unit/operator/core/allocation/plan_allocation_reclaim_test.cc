// Bytes that return to a namespace that has lent them: CacheQuota.spec.reclaim.policy.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

constexpr auto kPool = "nvme";
constexpr double kNoOrigin = 1e3;  // so slow that every cached byte has value

Demand demand(const std::string& ns, Bytes size, double ingest) {
    Demand job;
    job.job = {ns, "job"};
    job.pool = kPool;
    job.nodes = {"n1"};
    job.datasets = {{"train", "data-of-" + ns, size}};
    job.rates = JobRates{ingest, kNoOrigin, 1, false};
    return job;
}

// One node of 12 GiB, half for each namespace. The borrower has all of it; then the owner's job
// starts, for which a byte has `value` times the borrower's value.
AllocationView lent_out(ReclaimPolicy policy, double value) {
    AllocationView view;
    view.nodes = {{kPool, "n1", gib(12)}};
    QuotaView owner{"owner", kPool, gib(6)};
    owner.lending = gib(6);
    owner.reclaim = policy;
    QuotaView borrower{"borrower", kPool, gib(6)};
    borrower.borrowing = gib(6);
    view.quotas = {owner, borrower};
    view.demands = {demand("borrower", gib(12), 1e9), demand("owner", gib(6), value * 0.5e9)};
    Holding held{kPool, "n1", "data-of-borrower", gib(12), gib(12), gib(12)};
    held.ns = "borrower";
    view.holdings = {held};
    view.step = mib(64);
    return view;
}

const JobAllocation& of(const AllocationPlan& plan, const std::string& ns) {
    const auto found = std::find_if(
        plan.jobs.begin(), plan.jobs.end(), [&](const auto& job) { return job.job.ns == ns; });
    EXPECT_NE(found, plan.jobs.end());
    return *found;
}

// Allows 1 MiB of difference: a job that has almost all bytes that it needs hardly waits, so the
// planner gives the last of them to the other job.
void expect_about(Bytes bytes, Bytes all) {
    EXPECT_GE(bytes + mib(1), all);
    EXPECT_LE(bytes, all + mib(1));
}

TEST(ReclaimPolicy, AnyPolicyReturnsAllBytesThatTheOwnerCanUse) {
    const AllocationPlan plan = plan_allocation(lent_out(ReclaimPolicy::kAny, 0.1));
    expect_about(of(plan, "owner").target, gib(6));
    expect_about(of(plan, "borrower").target, gib(6));
}

TEST(ReclaimPolicy, LowerMarginalBenefitReturnsBytesOfHigherValueToTheOwner) {
    const AllocationPlan plan = plan_allocation(lent_out(ReclaimPolicy::kLowerMarginalBenefit, 2));
    expect_about(of(plan, "owner").target, gib(6));
    EXPECT_EQ(of(plan, "owner").borrowed, Bytes::zero())
        << "the bytes are within the owner's own quota";
    expect_about(of(plan, "borrower").target, gib(6));
}

TEST(ReclaimPolicy, LowerMarginalBenefitKeepsBytesOfHigherValueToTheBorrower) {
    const AllocationPlan plan =
        plan_allocation(lent_out(ReclaimPolicy::kLowerMarginalBenefit, 0.5));
    expect_about(of(plan, "owner").target, Bytes::zero());
    EXPECT_EQ(of(plan, "owner").reason, AllocationReason::kLowerMarginalBenefit);
    EXPECT_THAT(of(plan, "owner").message, HasSubstr("namespace owner lends 6Gi"));
    expect_about(of(plan, "borrower").target, gib(12));
}

TEST(ReclaimPolicy, NeverPolicyReturnsNoBytesAndReportsIt) {
    const AllocationPlan plan = plan_allocation(lent_out(ReclaimPolicy::kNever, 10));
    expect_about(of(plan, "owner").target, Bytes::zero());
    EXPECT_EQ(of(plan, "owner").reason, AllocationReason::kQuotaExhausted);
    EXPECT_THAT(of(plan, "owner").message, HasSubstr("policy Never"));
    expect_about(of(plan, "borrower").target, gib(12));
}

TEST(ReclaimPolicy, NeverPolicyReturnsOnlyBytesThatTheBorrowerDoesNotUse) {
    AllocationView view = lent_out(ReclaimPolicy::kNever, 0.1);
    view.demands[0].max_bytes = gib(8);
    const AllocationPlan plan = plan_allocation(view);
    EXPECT_EQ(of(plan, "borrower").target, gib(8));
    EXPECT_EQ(of(plan, "owner").target, gib(4));
}

TEST(ReclaimPolicy, GuaranteedMinimumIsAlwaysReturned) {
    for (const auto policy :
         {ReclaimPolicy::kAny, ReclaimPolicy::kLowerMarginalBenefit, ReclaimPolicy::kNever}) {
        AllocationView view = lent_out(policy, 0.1);
        view.demands[1].min_bytes = gib(2);
        EXPECT_GE(of(plan_allocation(view), "owner").target, gib(2));
    }
}

TEST(ReclaimPolicy, NeverPolicyReturnsBytesBeyondTheLendingLimit) {
    AllocationView view = lent_out(ReclaimPolicy::kNever, 0.1);
    view.quotas[0].lending = gib(2);
    view.holdings[0].granted = view.holdings[0].resident = gib(8);
    view.holdings[0].outstanding = gib(8);
    EXPECT_EQ(of(plan_allocation(view), "owner").target, gib(4));
}

// The plan stays the same after it was carried out.
TEST(ReclaimPolicy, CarriedOutPlanIsAFixpoint) {
    for (const auto policy : {ReclaimPolicy::kLowerMarginalBenefit, ReclaimPolicy::kNever}) {
        for (const double value : {0.5, 2.0}) {
            AllocationView view = lent_out(policy, value);
            AllocationPlan plan = plan_allocation(view);
            for (int round = 0; round < 2; ++round) {
                view.holdings.clear();
                for (const Grant& grant : plan.grants) {
                    view.holdings.push_back(
                        {kPool,
                         grant.node,
                         grant.dataset_uid,
                         grant.resident_bytes,
                         grant.resident_bytes,
                         grant.resident_bytes});
                }
                const AllocationPlan next = plan_allocation(view);
                EXPECT_EQ(of(next, "owner").target, of(plan, "owner").target);
                EXPECT_EQ(of(next, "borrower").target, of(plan, "borrower").target);
                plan = next;
            }
        }
    }
}

}  // namespace
}  // namespace stoker::control
