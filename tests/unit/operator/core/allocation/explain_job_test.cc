#include "operator/core/allocation/explain_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/allocation/plan_allocation.h"
#include "tests/unit/operator/core/allocation/random_view.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

using ::testing::ElementsAre;

constexpr double kMega = 1e6;

Demand demand(const std::string& ns, const std::string& name, Bytes total, double ingest) {
    Demand result;
    result.job = {ns, name};
    result.pool = "nvme";
    result.nodes = {"n1"};
    result.datasets = {{"train", name, total}};
    result.rates = JobRates{ingest, 100 * kMega, 1, false};
    return result;
}

// A pool of 100Gi for three jobs with 100Gi of data each; the origin gives each of them 100 MB/s.
AllocationView crowded() {
    AllocationView view;
    view.nodes = {{"nvme", "n1", gib(100)}};
    view.demands = {
        demand("a", "slow", gib(100), 200 * kMega),
        demand("a", "middle", gib(100), 400 * kMega),
        demand("b", "fast", gib(100), 800 * kMega)};
    view.step = mib(64);
    return view;
}

std::vector<std::string> order(const JobExplanation& explanation) {
    std::vector<std::string> names;
    for (const Contender& contender : explanation.contenders) {
        names.push_back(contender.job.name);
    }
    return names;
}

double rate_at(const JobExplanation& explanation, Bytes cached) {
    double rate = 0;
    for (const CurvePoint& point : explanation.curve) {
        rate = point.cached <= cached ? point.rate : rate;
    }
    return rate;
}

TEST(ExplainJob, RanksContendersByValue) {
    const auto explained = explain_job(crowded(), {"a", "middle"});
    ASSERT_TRUE(explained);
    EXPECT_THAT(order(*explained), ElementsAre("fast", "middle", "slow"));
    // "fast" saves 8 MB/s with its last GiB, and wants no more.
    EXPECT_NEAR(explained->contenders[0].last_per_gib, 8 * kMega, kMega / 10);
    EXPECT_EQ(explained->contenders[0].next_per_gib, 0);
    EXPECT_NEAR(explained->contenders[1].next_per_gib, 4 * kMega, kMega / 10);
    EXPECT_EQ(explained->contenders[2].last_per_gib, 0);
    EXPECT_NEAR(explained->contenders[2].next_per_gib, 2 * kMega, kMega / 10);
}

TEST(ExplainJob, AgreesWithThePlan) {
    const AllocationPlan plan = plan_allocation(crowded());
    for (const JobAllocation& allocation : plan.jobs) {
        const auto explained = explain_job(crowded(), allocation.job);
        ASSERT_TRUE(explained);
        EXPECT_EQ(explained->allocation, allocation);
        for (const Contender& contender : explained->contenders) {
            if (contender.job == allocation.job) {
                EXPECT_EQ(contender.granted, allocation.granted);
                EXPECT_EQ(contender.wanted, allocation.wanted);
            }
        }
    }
}

// One dataset, of which each node owns a half; the other node's half is not the job's.
TEST(ExplainJob, CountsBytesOnTheJobsOwnNodesOnly) {
    AllocationView view = crowded();
    view.nodes.push_back({"nvme", "n2", gib(100)});
    view.demands = {
        demand("a", "one", gib(100), 200 * kMega), demand("a", "two", gib(100), 400 * kMega)};
    view.demands[1].nodes = {"n2"};
    view.demands[1].datasets[0].uid = view.demands[0].datasets[0].uid;
    view.peers = {{view.demands[0].datasets[0].uid, {"n1", "n2"}}};
    const auto explained = explain_job(view, {"a", "one"});
    ASSERT_TRUE(explained);
    EXPECT_EQ(explained->dataset_bytes, gib(50));
    for (const Contender& contender : explained->contenders) {
        if (contender.job == explained->allocation.job) {
            EXPECT_EQ(contender.granted, explained->allocation.granted);
            EXPECT_EQ(contender.wanted, explained->allocation.wanted);
        }
    }
}

TEST(ExplainJob, CurveEndsAtOriginRateAndIngestRate) {
    const auto explained = explain_job(crowded(), {"a", "middle"});
    ASSERT_TRUE(explained);
    const std::vector<CurvePoint>& curve = explained->curve;
    ASSERT_GT(curve.size(), 10U);
    EXPECT_EQ(curve.front().cached, Bytes::zero());
    EXPECT_NEAR(curve.front().rate, 100 * kMega, kMega);
    EXPECT_EQ(curve.back().cached, gib(100));
    EXPECT_NEAR(curve.back().rate, 400 * kMega, kMega);
    EXPECT_EQ(curve.front().fetched, 1);
    EXPECT_EQ(curve.back().fetched, 0);
    const JobAllocation& allocation = explained->allocation;
    EXPECT_NEAR(rate_at(*explained, allocation.target), allocation.numbers.rate, 5 * kMega);
    for (std::size_t i = 1; i < curve.size(); ++i) {
        EXPECT_GE(curve[i].rate, curve[i - 1].rate);
    }
}

TEST(ExplainJob, OffersOnlyRemediesThatThePlannerConfirms) {
    const auto explained = explain_job(crowded(), {"a", "middle"});
    ASSERT_TRUE(explained);
    ASSERT_FALSE(explained->remedies.empty());
    for (const Remedy& remedy : explained->remedies) {
        EXPECT_GT(remedy.after.granted, explained->allocation.granted);
        AllocationView changed = settle(crowded()).view;
        ASSERT_TRUE(apply_change(remedy.change, changed));
        const Outcome outcome = settle(changed);
        const auto after =
            std::ranges::find(outcome.plan.jobs, explained->allocation.job, &JobAllocation::job);
        ASSERT_NE(after, outcome.plan.jobs.end());
        EXPECT_EQ(*after, remedy.after);
    }
}

TEST(ExplainJob, OffersALargerQuotaWhereTheQuotaBinds) {
    AllocationView view = crowded();
    view.nodes[0].capacity = gib(1000);
    view.quotas = {{"b", "nvme", gib(20)}};
    const auto explained = explain_job(view, {"b", "fast"});
    ASSERT_TRUE(explained);
    EXPECT_EQ(explained->allocation.reason, AllocationReason::kQuotaExhausted);
    ASSERT_EQ(explained->remedies.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<SetNominal>(explained->remedies[0].change));
}

TEST(ExplainJob, OffersAGuestTheDatasetOwnersQuota) {
    AllocationView view = crowded();
    view.nodes[0].capacity = gib(400);
    view.quotas = {{"data", "nvme", gib(10)}, {"b", "nvme", gib(10)}};
    view.demands[2].datasets[0].ns = "data";
    const auto explained = explain_job(view, {"b", "fast"});
    ASSERT_TRUE(explained);
    ASSERT_EQ(explained->remedies.size(), 1U);
    EXPECT_EQ(std::get<SetNominal>(explained->remedies[0].change).ns, "data");
}

TEST(ExplainJob, HasNoCurveForAJobWithoutAProfile) {
    AllocationView view = crowded();
    view.demands[1].rates.reset();
    const auto explained = explain_job(view, {"a", "middle"});
    ASSERT_TRUE(explained);
    EXPECT_TRUE(explained->curve.empty());
    EXPECT_FALSE(explain_job(view, {"a", "nobody"}));
}

// In every random cluster, each job's explanation agrees with the plan.
TEST(ExplainJob, AgreesWithThePlanOfRandomClusters) {
    const std::uint64_t seed = test_seed();
    for (int round = 0; round < 100 && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        const AllocationView view =
            RandomView{seed + static_cast<std::uint64_t>(round)}.make(round % 2 == 0);
        for (const JobAllocation& allocation : plan_allocation(view).jobs) {
            const auto explained = explain_job(view, allocation.job);
            ASSERT_TRUE(explained);
            EXPECT_EQ(explained->allocation, allocation);
            for (const CurvePoint& point : explained->curve) {
                EXPECT_GE(point.rate, 0);
                EXPECT_LE(point.rate, allocation.numbers.ingest_rate * 1.000001);
            }
            for (const Remedy& remedy : explained->remedies) {
                EXPECT_GT(remedy.after.granted, explained->rests->granted);
            }
        }
    }
}

}  // namespace
}  // namespace stoker::control
