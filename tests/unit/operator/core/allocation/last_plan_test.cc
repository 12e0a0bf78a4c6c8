#include "operator/core/allocation/last_plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

// Jobs "fast" (100 bytes/s) and "slow" (50 bytes/s) with a dataset of 100 bytes each, on node n1.
class LastPlan : public ::testing::Test {
protected:
    LastPlan() {
        for (const char* name : {"fast", "slow"}) {
            demands_.push_back(job_with_rates(name == std::string{"fast"} ? 100 : 50, 0));
            demands_.back().job.name = name;
            demands_.back().nodes = {"n1"};
            demands_.back().datasets[0].uid = name;
        }
        table_ = table_of(demands_);
        decision_.lower.resize(table_.claims.size());
        decision_.owed.resize(table_.accounts.size());
    }

    void plan(Bytes fast, Bytes slow) {
        table_.claims[0].planned = fast;
        table_.claims[1].planned = slow;
    }

    void target(Bytes fast, Bytes slow) { decision_.target = {fast, slow}; }

    std::vector<Demand> demands_;
    ClaimTable table_;
    PoolDecision decision_;
};

TEST_F(LastPlan, IsReplacedByOneThatIsWorthMore) {
    plan(Bytes{50}, Bytes{50});
    target(Bytes{60}, Bytes{40});
    EXPECT_TRUE(replaces_last_plan(table_, decision_));
    target(Bytes{40}, Bytes{60});
    EXPECT_FALSE(replaces_last_plan(table_, decision_));
}

TEST_F(LastPlan, IsReplacedByOneThatOnlyAddsBytes) {
    plan(Bytes{50}, Bytes{50});
    target(Bytes{50}, Bytes{51});
    EXPECT_TRUE(replaces_last_plan(table_, decision_));
}

TEST_F(LastPlan, IsReplacedIfItDoesNotFitTheNode) {
    table_.nodes[0].capacity = Bytes{90};
    plan(Bytes{50}, Bytes{50});
    target(Bytes{40}, Bytes{50});
    EXPECT_TRUE(replaces_last_plan(table_, decision_));
}

TEST_F(LastPlan, IsReplacedIfItLacksAMinimum) {
    plan(Bytes{50}, Bytes{50});
    decision_.lower = {Bytes::zero(), Bytes{60}};
    target(Bytes{40}, Bytes{60});
    EXPECT_TRUE(replaces_last_plan(table_, decision_));
}

TEST_F(LastPlan, StaysIfAtMostOneStepMoves) {
    table_.step = Bytes{10};
    plan(Bytes{50}, Bytes{50});
    target(Bytes{60}, Bytes{40});
    EXPECT_TRUE(moves_within_a_step(table_, decision_));
    target(Bytes{61}, Bytes{39});
    EXPECT_FALSE(moves_within_a_step(table_, decision_));
}

// A minimum beyond the quota is no guaranteed byte.
TEST_F(LastPlan, ChangesByAStepThatCompletesAMinimum) {
    table_.step = Bytes{10};
    plan(Bytes{50}, Bytes{50});
    target(Bytes{45}, Bytes{55});
    table_.claims[1].users[0].minimum = Bytes{55};
    EXPECT_FALSE(moves_within_a_step(table_, decision_));
    table_.claims[1].users[0].minimum = Bytes{56};
    EXPECT_TRUE(moves_within_a_step(table_, decision_));
}

}  // namespace
}  // namespace stoker::control
