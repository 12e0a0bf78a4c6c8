#include "operator/core/allocation/claim_table.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

TEST(ClaimTable, WantsOnlyBytesThatReduceWaiting) {
    EXPECT_EQ(table_of(job_with_rates(100, 25)).claims.at(0).limit, Bytes{75});
    EXPECT_EQ(table_of(job_with_rates(100, 0)).claims.at(0).limit, Bytes{100});
    EXPECT_EQ(table_of(job_with_rates(100, 500)).claims.at(0).limit, Bytes{0});
}

TEST(ClaimTable, WindowedJobsOnANodeShareFetches) {
    Demand first = job_with_rates(100, 50);
    first.datasets[0].access.kind = AccessKind::kWindowed;
    Demand second = first;
    second.job.name = "other";
    std::vector<Demand> demands{first, second};
    const ClaimTable table = table_of(demands);
    // One fetch serves both jobs, so half of the rate each is enough without a cache.
    EXPECT_DOUBLE_EQ(table.claims.at(0).users.at(0).fetched, 0.5);
    EXPECT_EQ(table.claims.at(0).limit, Bytes{0});
}

TEST(ClaimTable, TreatsInvalidRatesAsUnknown) {
    for (const double rate :
         {0.0, -5.0, std::nan(""), 1e30, std::numeric_limits<double>::infinity()}) {
        const ClaimTable table = table_of(job_with_rates(rate, rate));
        EXPECT_EQ(table.jobs.at(0).knowledge, JobKnowledge::kProfiling) << rate;
        EXPECT_EQ(table.claims.at(0).limit, Bytes{100}) << rate;
    }
}

}  // namespace
}  // namespace stoker::control
