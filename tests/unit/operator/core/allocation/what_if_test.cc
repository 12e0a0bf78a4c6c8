#include "operator/core/allocation/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"
#include "tests/unit/operator/core/allocation/random_view.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

Demand demand(const std::string& name, Bytes total, double ingest) {
    Demand result;
    result.job = {"a", name};
    result.pool = "nvme";
    result.nodes = {"n1"};
    result.datasets = {{"train", name, total}};
    result.rates = JobRates{ingest, ingest / 10, 1, false};
    return result;
}

// A node with 10Gi; "fast" gains twice as much per byte as "slow", and both want at least 8Gi.
AllocationView crowded() {
    AllocationView view;
    view.nodes = {{"nvme", "n1", gib(10)}};
    view.demands = {demand("fast", gib(10), 2e9), demand("slow", gib(10), 1e9)};
    view.step = mib(64);
    return view;
}

Bytes granted(const AllocationPlan& plan, const std::string& name) {
    for (const JobAllocation& job : plan.jobs) {
        if (job.job.name == name) {
            return job.granted;
        }
    }
    return Bytes::unlimited();
}

TEST(WhatIf, SettlesAfterBytesHaveMoved) {
    AllocationView view = crowded();
    view.holdings = {{"nvme", "n1", "slow", gib(10), gib(10), gib(10), "a", true}};
    view.settled = false;
    EXPECT_EQ(granted(plan_allocation(view), "fast"), Bytes::zero()) << "shrink first";
    const Outcome outcome = settle(view);
    EXPECT_TRUE(outcome.at_rest);
    EXPECT_EQ(granted(outcome.plan, "fast"), gib(9));
    EXPECT_EQ(granted(outcome.plan, "slow"), gib(1));
}

TEST(WhatIf, BytesOfADeletedJobGoToJobsThatWantMore) {
    AllocationView view = settle(crowded()).view;
    ASSERT_TRUE(apply_change(RemoveJob{{"a", "fast"}}, view));
    EXPECT_EQ(granted(settle(view).plan, "slow"), gib(9))
        << "the deleted job's idle bytes are swept";
}

TEST(WhatIf, DividesAddedCapacityAmongThePoolsNodes) {
    AllocationView view = crowded();
    view.nodes.push_back({"nvme", "n2", gib(1)});
    view.nodes.push_back({"other", "n1", gib(1)});
    const AddCapacity more{"nvme", gib(8), false};
    EXPECT_EQ(describe(more, view), "8Gi more in pool nvme (4Gi on each of 2 nodes)");
    ASSERT_TRUE(apply_change(more, view));
    EXPECT_EQ(view.nodes[0].capacity, gib(14));
    EXPECT_EQ(view.nodes[1].capacity, gib(5));
    EXPECT_EQ(view.nodes[2].capacity, gib(1));
    EXPECT_EQ(granted(settle(view).plan, "slow"), gib(5));
    ASSERT_TRUE(apply_change(AddCapacity{"nvme", gib(30), true}, view));
    EXPECT_EQ(view.nodes[1].capacity, Bytes::zero()) << "a capacity is never negative";
}

TEST(WhatIf, LargerQuotaGivesItsNamespaceMore) {
    AllocationView view = crowded();
    view.quotas = {{"a", "nvme", gib(4)}};
    EXPECT_EQ(granted(settle(view).plan, "fast"), gib(4));
    ASSERT_TRUE(apply_change(SetNominal{"a", "nvme", gib(7)}, view));
    EXPECT_EQ(granted(settle(view).plan, "fast"), gib(7));
}

TEST(WhatIf, RefusesUnknownNamesAndListsKnownOnes) {
    AllocationView view = crowded();
    view.quotas = {{"a", "nvme", gib(4)}};
    const auto complaint = [&view](const Change& change) {
        const Status status = apply_change(change, view);
        return status ? "" : status.error().message;
    };
    EXPECT_THAT(complaint(AddCapacity{"nvm", gib(1), false}), HasSubstr("with nodes: nvme"));
    EXPECT_THAT(complaint(RemoveJob{{"b", "fast"}}), HasSubstr("that do: a/fast, a/slow"));
    EXPECT_THAT(
        complaint(SetNominal{"b", "nvme", gib(1)}), HasSubstr("quotas in force: a in nvme"));
}

TEST(WhatIf, SettlesInAlmostEveryRandomCluster) {
    const std::uint64_t seed = test_seed();
    constexpr int kRounds = 300;
    int resting = 0;
    for (int round = 0; round < kRounds; ++round) {
        const Outcome outcome =
            settle(RandomView{seed + static_cast<std::uint64_t>(round)}.make(false));
        resting += outcome.at_rest ? 1 : 0;
    }
    EXPECT_GE(resting, kRounds * 9 / 10) << "of " << kRounds;
}

}  // namespace
}  // namespace stoker::control
