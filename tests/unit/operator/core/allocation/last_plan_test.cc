#include "operator/core/allocation/last_plan.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

// Jobs "fast" (100 bytes/s) and "slow" (50 bytes/s) with a dataset of 100 bytes each on node n1, and
// "far-fast" and "far-slow" on node n2.
class LastPlan : public ::testing::Test {
protected:
    LastPlan() {
        for (const std::string name : {"fast", "slow", "far-fast", "far-slow"}) {
            demands_.push_back(job_with_rates(name.ends_with("fast") ? 100 : 50, 0));
            demands_.back().job.name = name;
            demands_.back().nodes = {name.starts_with("far") ? "n2" : "n1"};
            demands_.back().datasets[0].uid = name;
        }
        table_ = table_of(demands_);
        decision_.lower.resize(table_.claims.size());
        decision_.owed.resize(table_.accounts.size());
        plan({50, 50, 50, 50});
    }

    void plan(const std::vector<std::uint64_t>& bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            table_.claims[i].planned = Bytes{bytes[i]};
        }
    }

    void target(const std::vector<std::uint64_t>& bytes) {
        decision_.target = bytes_of_claims(bytes);
    }

    void expect_mended(const std::vector<std::uint64_t>& bytes) {
        EXPECT_EQ(mend_last_plan(table_, decision_), bytes_of_claims(bytes));
    }

    static ClaimBytes bytes_of_claims(const std::vector<std::uint64_t>& bytes) {
        ClaimBytes result;
        for (const std::uint64_t count : bytes) {
            result.emplace_back(count);
        }
        return result;
    }

    std::vector<Demand> demands_;
    ClaimTable table_;
    PoolDecision decision_;
};

TEST_F(LastPlan, IsReplacedByOneThatIsWorthMore) {
    target({60, 40, 50, 50});
    expect_mended({60, 40, 50, 50});
    target({40, 60, 50, 50});
    expect_mended({50, 50, 50, 50});
}

TEST_F(LastPlan, IsReplacedByOneThatOnlyAddsBytes) {
    target({50, 51, 50, 50});
    expect_mended({50, 51, 50, 50});
}

TEST_F(LastPlan, IsReplacedIfItDoesNotFitTheNode) {
    table_.nodes[0].capacity = Bytes{90};
    target({40, 50, 50, 50});
    expect_mended({40, 50, 50, 50});
}

TEST_F(LastPlan, IsReplacedIfItLacksAMinimum) {
    decision_.lower[1] = Bytes{60};
    target({40, 60, 50, 50});
    expect_mended({40, 60, 50, 50});
}

// The loss is larger than the gain.
TEST_F(LastPlan, LossOnOneNodeDoesNotBlockAGainOnAnother) {
    target({20, 80, 60, 40});
    expect_mended({50, 50, 60, 40});
}

TEST_F(LastPlan, NodesOfADatasetChangeTogether) {
    table_.claims[2].uid = "slow";
    target({20, 80, 60, 40});
    expect_mended({50, 50, 50, 50});
}

// The far jobs' growth needs bytes that the slow job has.
TEST_F(LastPlan, NamespaceWithAFullQuotaChangesAsAWhole) {
    table_.accounts[0].quota.borrowing = Bytes{200};
    target({50, 20, 80, 50});
    expect_mended({50, 20, 80, 50});
    target({20, 50, 50, 80});
    expect_mended({50, 50, 50, 50});
}

TEST_F(LastPlan, PoolThatIsLentOutChangesAsAWhole) {
    table_.accounts.push_back(table_.accounts[0]);
    table_.accounts[1].quota.nominal = Bytes{1800};  // of 2000 bytes on the nodes
    table_.accounts[1].quota.lending = Bytes::zero();
    decision_.owed.resize(2);
    target({50, 20, 80, 50});
    expect_mended({50, 20, 80, 50});
    target({20, 50, 50, 80});
    expect_mended({50, 50, 50, 50});
}

TEST_F(LastPlan, NamespaceOfWeightZeroKeepsNoBorrowedBytes) {
    table_.accounts[0].quota.nominal = Bytes{150};
    target({50, 50, 50, 0});
    expect_mended({50, 50, 50, 50});
    table_.accounts[0].quota.weight = 0;
    expect_mended({50, 50, 50, 0});
}

// Idle bytes alone exceed the limit of the namespace.
TEST_F(LastPlan, IsNotReplacedForALimitThatTheTargetsExceedAsMuch) {
    table_.accounts[0].quota.borrowing = Bytes{100};
    table_.accounts[0].idle = Bytes{100};
    target({40, 60, 50, 50});
    expect_mended({50, 50, 50, 50});
}

TEST_F(LastPlan, StaysIfAtMostOneStepMoves) {
    table_.step = Bytes{10};
    target({40, 60, 50, 50});
    EXPECT_TRUE(moves_within_a_step(table_, decision_));
    target({39, 61, 50, 50});
    EXPECT_FALSE(moves_within_a_step(table_, decision_));
}

// A minimum beyond the quota is no guaranteed byte.
TEST_F(LastPlan, ChangesByAStepThatCompletesAMinimum) {
    table_.step = Bytes{10};
    target({45, 55, 50, 50});
    table_.claims[1].users[0].minimum = Bytes{55};
    EXPECT_FALSE(moves_within_a_step(table_, decision_));
    table_.claims[1].users[0].minimum = Bytes{56};
    EXPECT_TRUE(moves_within_a_step(table_, decision_));
}

}  // namespace
}  // namespace stoker::control
