#include "operator/core/allocation/claim_table.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

constexpr const char* kPool = "nvme";

Demand job_with_rates(double ingest, double origin) {
    Demand job;
    job.job = {"a", "job"};
    job.pool = kPool;
    job.nodes = {"n1", "n2"};
    job.datasets = {{"train", "d", Bytes{100}}};
    job.rates = JobRates{ingest, origin, 1, false};
    return job;
}

ClaimTable table_of(std::vector<Demand>& demands) {
    static AllocationView view;  // the tables point into it
    view = AllocationView{};
    view.nodes = {{kPool, "n1", Bytes{1000}}, {kPool, "n2", Bytes{1000}}};
    view.demands = demands;
    return make_claim_tables(view).at(kPool);
}

ClaimTable table_of(Demand demand) {
    std::vector<Demand> demands{std::move(demand)};
    return table_of(demands);
}

TEST(ClaimTable, WantsNoMoreThanLetsTheJobRunWithoutWaiting) {
    EXPECT_EQ(table_of(job_with_rates(100, 25)).claims.at(0).limit, Bytes{75});
    EXPECT_EQ(table_of(job_with_rates(100, 0)).claims.at(0).limit, Bytes{100});
    EXPECT_EQ(table_of(job_with_rates(100, 500)).claims.at(0).limit, Bytes{0});
}

TEST(ClaimTable, ACompoundOfEqualJobsIsWorthTheirSum) {
    Demand first = job_with_rates(100, 0);
    Demand second = first;
    second.job.name = "other";
    second.rates->ingest = 50;
    std::vector<Demand> demands{first, second};
    const ClaimTable table = table_of(demands);
    const std::vector<ClaimPiece> pieces = value_pieces(table, table.claims.at(0), {});
    // (100 + 50) bytes/s on two nodes over 100 bytes.
    EXPECT_NEAR(pieces.front().value, 0.75, 1e-6);
    EXPECT_EQ(pieces.back().end, Bytes{100});
}

TEST(ClaimTable, PiecesNeverRiseAndBytesOfTheLastGrantCountALittleMore) {
    ClaimTable table = table_of(job_with_rates(100, 0));
    Claim claim = table.claims.at(0);
    claim.held = Bytes{40};
    table.hysteresis = 1.05;
    double before = std::numeric_limits<double>::infinity();
    for (const ClaimPiece& piece : value_pieces(table, claim, {})) {
        EXPECT_LE(piece.value, before);
        EXPECT_NEAR(piece.value, piece.end <= Bytes{40} ? 0.525 : 0.5, 1e-6);
        before = piece.value;
    }
}

// Bytes of the first claim that are worth more than hardly anything.
Bytes worth_something(const Demand& job) {
    const ClaimTable table = table_of(job);
    Bytes end{};
    for (const ClaimPiece& piece : value_pieces(table, table.claims.at(0), {})) {
        end = piece.value > 1e-3 ? piece.end : end;
    }
    return end;
}

TEST(ClaimTable, LetsOthersHaveWhatTheLastEpochHasReadInEighths) {
    Demand job = job_with_rates(100, 0);
    EXPECT_EQ(worth_something(job), Bytes{100});
    job.last_epoch_progress = 0.3;
    EXPECT_EQ(worth_something(job), Bytes{76});  // two eighths of 100, 12 bytes each
    EXPECT_EQ(table_of(job).claims.at(0).limit, Bytes{100}) << "the rest stays for the next job";
    job.last_epoch_progress = 1;
    EXPECT_EQ(worth_something(job), Bytes{0});
    job.last_epoch_progress = std::nan("");
    EXPECT_EQ(worth_something(job), Bytes{100});
}

TEST(ClaimTable, WindowedJobsOfANodeShareAFetch) {
    Demand first = job_with_rates(100, 50);
    first.datasets[0].access.kind = AccessKind::kWindowed;
    Demand second = first;
    second.job.name = "other";
    std::vector<Demand> demands{first, second};
    const ClaimTable table = table_of(demands);
    // One fetch serves both, so half of the rate each is enough without any cache.
    EXPECT_DOUBLE_EQ(table.claims.at(0).users.at(0).fetched, 0.5);
    EXPECT_EQ(table.claims.at(0).limit, Bytes{0});
}

TEST(ClaimTable, WithPricesEveryByteFromTheOriginCounts) {
    Demand job = job_with_rates(100, 500);
    job.rates->compute_bound = true;
    AllocationView view;
    view.nodes = {{kPool, "n1", Bytes{1000}}};
    view.demands = {job};
    PoolView pool;
    pool.pool = kPool;
    pool.objective = Objective::kCost;
    pool.price_per_gib = 2;
    view.pools = {pool};
    const auto tables = make_claim_tables(view);
    const ClaimTable& table = tables.at(kPool);
    EXPECT_EQ(table.claims.at(0).limit, Bytes{100});
    EXPECT_NEAR(
        value_pieces(table, table.claims.at(0), {}).front().value, 2.0 / (1U << 30U), 1e-12);
}

TEST(ClaimTable, TakesRatesThatMakeNoSenseForUnknown) {
    for (const double rate :
         {0.0, -5.0, std::nan(""), 1e30, std::numeric_limits<double>::infinity()}) {
        const ClaimTable table = table_of(job_with_rates(rate, rate));
        EXPECT_EQ(table.jobs.at(0).knowledge, JobKnowledge::kProfiling) << rate;
        EXPECT_EQ(table.claims.at(0).limit, Bytes{100}) << rate;
    }
}

}  // namespace
}  // namespace stoker::control
