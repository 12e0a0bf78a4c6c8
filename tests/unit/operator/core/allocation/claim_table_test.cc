#include "operator/core/allocation/claim_table.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/core/allocation/claim_value.h"
#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

TEST(ClaimTable, WantsOnlyBytesThatReduceWaiting) {
    EXPECT_EQ(table_of(job_with_rates(100, 25)).claims.at(0).limit, Bytes{75});
    EXPECT_EQ(table_of(job_with_rates(100, 0)).claims.at(0).limit, Bytes{100});
    EXPECT_EQ(table_of(job_with_rates(100, 500)).claims.at(0).limit, Bytes{0});
}

// Before its profile the job had a target of 100 bytes, but no room for them.
TEST(ClaimTable, BytesThatAJobNeitherHasNorNeedsAreNotWanted) {
    AllocationView view;
    view.nodes = {{kPool, "n1", Bytes{1000}}};
    view.demands = {job_with_rates(100, 50)};
    view.holdings = {{kPool, "n1", "d", Bytes::zero(), Bytes{20}}};
    view.holdings[0].target = Bytes{100};
    EXPECT_EQ(make_claim_tables(view).at(kPool).claims.at(0).limit, Bytes{50});
    view.holdings[0].granted = Bytes{80};
    EXPECT_EQ(make_claim_tables(view).at(kPool).claims.at(0).limit, Bytes{80});
    view.holdings[0].resident = Bytes{90};
    EXPECT_EQ(make_claim_tables(view).at(kPool).claims.at(0).limit, Bytes{90});
    view.holdings[0].target = Bytes{70};
    EXPECT_EQ(make_claim_tables(view).at(kPool).claims.at(0).limit, Bytes{70});
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

// The fastest of three fetches what it misses; the others read that.
TEST(ClaimTable, WindowedJobsFetchAsOftenAsTheFastestReads) {
    std::vector<Demand> demands;
    for (const double rate : {100.0, 50.0, 70.0}) {
        demands.push_back(job_with_rates(rate, 0));
        demands.back().job.name += std::to_string(demands.size());
        demands.back().datasets[0].access.kind = AccessKind::kWindowed;
    }
    const ClaimTable table = table_of(demands);
    double fetched = 0;
    for (const ClaimUser& user : table.claims.at(0).users) {
        EXPECT_DOUBLE_EQ(user.fetched, 100.0 / 220);
        fetched += user.rate * fetched_with(table, user, Bytes{20});
    }
    EXPECT_DOUBLE_EQ(fetched, .8 * 100 / 2) << "on each of two nodes";
}

// Jobs without a profile count as equally fast.
TEST(ClaimTable, WindowedJobsWithoutAProfileShareEvenly) {
    std::vector<Demand> demands;
    for (const double rate : {0.0, 0.0, 0.0}) {
        demands.push_back(job_with_rates(rate, 0));
        demands.back().job.name += std::to_string(demands.size());
        demands.back().datasets[0].access.kind = AccessKind::kWindowed;
    }
    EXPECT_DOUBLE_EQ(table_of(demands).claims.at(0).users.at(0).fetched, 1.0 / 3);
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
