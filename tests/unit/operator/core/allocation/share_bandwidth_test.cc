#include "operator/core/allocation/share_bandwidth.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

// Two jobs with a dataset of 100 bytes each on both nodes, none of them cached.
ClaimTable two_jobs(double first, double second, double budget) {
    Demand other = job_with_rates(second, 0);
    other.job.name = "other";
    other.datasets[0].uid = "e";
    std::vector<Demand> jobs{job_with_rates(first, 0), other};
    ClaimTable table = table_of(jobs);
    table.pool.origin_bytes_per_second = budget;
    return table;
}

PoolDecision shared(const ClaimTable& table) {
    PoolDecision decision;
    decision.target.resize(table.claims.size());
    decision.granted.resize(table.claims.size());
    share_bandwidth(table, decision);
    return decision;
}

TEST(ShareBandwidth, IsMaxMinOverTheJobs) {
    const PoolDecision decision = shared(two_jobs(20, 100, 90));
    EXPECT_EQ(decision.job_origin, (std::vector<double>{20, 70}));
    // Half of a job's share on each of its nodes.
    EXPECT_EQ(decision.origin_limit, (std::vector<std::uint64_t>{10, 35, 10, 35}));
}

TEST(ShareBandwidth, SetsNoLimitIfBandwidthSufficesOrIsUnknown) {
    for (const double budget : {0.0, 120.0, 1e300}) {
        const PoolDecision decision = shared(two_jobs(20, 100, budget));
        EXPECT_EQ(decision.origin_limit, (std::vector<std::uint64_t>{0, 0, 0, 0})) << budget;
    }
}

TEST(ShareBandwidth, LeavesFillsWhatJobsDoNotNeed) {
    EXPECT_EQ(shared(two_jobs(20, 100, 0)).fill_origin, std::nullopt);
    EXPECT_EQ(shared(two_jobs(20, 100, 150)).fill_origin, (FillOrigin{kPool, 30, 0}));
    EXPECT_EQ(shared(two_jobs(20, 100, 90)).fill_origin, (FillOrigin{kPool, 0, 0}));
}

TEST(ShareBandwidth, CountsReadsOfJobsWithoutAProfile) {
    Demand job = job_with_rates(20, 0);
    job.rates.reset();
    Demand fill = job;
    fill.job.name = "fill";
    fill.datasets[0].uid = "e";
    fill.fill = true;
    std::vector<Demand> demands{job, fill};
    ClaimTable table = table_of(demands);
    table.pool.origin_bytes_per_second = 100;
    const std::optional<FillOrigin> left = shared(table).fill_origin;
    ASSERT_TRUE(left);
    EXPECT_EQ(left->unprofiled, 2U) << "the job on two nodes";
    EXPECT_GE(left->bytes_per_second, 98U);
}

}  // namespace
}  // namespace stoker::control
