#include "operator/core/allocation/claim_value.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

TEST(ClaimValue, SumsValuesOfJobsThatShareADataset) {
    Demand first = job_with_rates(100, 0);
    Demand second = first;
    second.job.name = "other";
    second.rates->ingest = 50;
    std::vector<Demand> demands{first, second};
    const ClaimTable table = table_of(demands);
    const std::vector<ValuePiece> pieces = value_pieces(table, table.claims.at(0), {});
    // (100 + 50) bytes/s on two nodes are 75 per node; for 100 bytes of data: 0.75 per byte.
    EXPECT_NEAR(pieces.front().value, 0.75, 1e-6);
    EXPECT_EQ(pieces.back().end, Bytes{100});
}

TEST(ClaimValue, ValuePerByteNeverRisesAndIsHigherForGrantedBytes) {
    ClaimTable table = table_of(job_with_rates(100, 0));
    Claim claim = table.claims.at(0);
    claim.planned = Bytes{40};
    table.hysteresis = 1.05;
    double before = std::numeric_limits<double>::infinity();
    for (const ValuePiece& piece : value_pieces(table, claim, {})) {
        EXPECT_LE(piece.value, before);
        EXPECT_NEAR(piece.value, piece.end <= Bytes{40} ? 0.525 : 0.5, 1e-6);
        before = piece.value;
    }
}

TEST(ClaimValue, CutsTheValueCurveIntoPiecesOfWholeSteps) {
    Demand job = job_with_rates(100, 0);
    job.datasets[0].access.kind = AccessKind::kImportance;
    ClaimTable table = table_of(job);
    table.step = Bytes{10};
    std::vector<Bytes> ends;
    for (const ValuePiece& piece : value_pieces(table, table.claims.at(0), {false, 4})) {
        ends.push_back(piece.end);
    }
    EXPECT_EQ(ends, (std::vector<Bytes>{Bytes{30}, Bytes{60}, Bytes{90}, Bytes{100}}));
}

// Bytes of the first claim with a value above noise (1e-3).
Bytes worth_something(const Demand& job) {
    const ClaimTable table = table_of(job);
    Bytes end{};
    for (const ValuePiece& piece : value_pieces(table, table.claims.at(0), {})) {
        end = piece.value > 1e-3 ? piece.end : end;
    }
    return end;
}

TEST(ClaimValue, ReleasesLastEpochBytesInEighths) {
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

TEST(ClaimValue, WithPricesEveryOriginByteCounts) {
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

TEST(ClaimValue, ValueOfBytesIsStrictlyConcaveAndIndependentOfThePlan) {
    ClaimTable table = table_of(job_with_rates(100, 0));
    table.hysteresis = 1.05;
    Claim claim = table.claims.at(0);
    const auto next = [&](std::uint64_t bytes) {
        return value_at(table, claim, Bytes{bytes + 1}) - value_at(table, claim, Bytes{bytes});
    };
    for (std::uint64_t bytes = 0; bytes + 1 < 100; ++bytes) {
        EXPECT_GT(next(bytes), next(bytes + 1)) << bytes;
        EXPECT_NEAR(next(bytes), 0.5, 1e-5) << bytes;
    }
    const double before = value_at(table, claim, Bytes{70});
    claim.planned = Bytes{40};
    claim.held = Bytes{90};
    claim.resident = Bytes{90};
    table.nodes.at(claim.node).free = Bytes{10};
    EXPECT_EQ(value_at(table, claim, Bytes{70}), before);
}

// A rate that is no number of bytes would make the values infinite.
TEST(ClaimValue, ValueIsFiniteForTinyNumbers) {
    Demand job = job_with_rates(100, 0);
    Demand tiny = job;
    tiny.job.name = "tiny";
    tiny.rates = JobRates{1e-310, 1e-310, 0, false};
    tiny.datasets[0].sample_bytes = 1e-310;
    std::vector<Demand> demands{job, tiny};
    ClaimTable table = table_of(demands);
    for (const Objective objective : {Objective::kThroughput, Objective::kCost}) {
        table.pool.objective = objective;
        table.pool.price_per_gib = 1e308;
        table.pool.price_per_request = 1;
        EXPECT_TRUE(std::isfinite(value_at(table, table.claims.at(0), Bytes{70})));
    }
}

}  // namespace
}  // namespace stoker::control
