#include "operator/core/allocation/water_fill.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/allocation/water_fill_state.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

using Amounts = std::vector<std::uint64_t>;

FillItem item(std::size_t node, std::uint32_t account, std::uint64_t bytes, double value) {
    FillItem result;
    result.node = node;
    result.account = account;
    result.pieces = {{bytes, value}};
    return result;
}

FillProblem problem_of(
    std::vector<std::uint64_t> nodes,
    std::vector<std::uint64_t> accounts,
    std::vector<FillItem> items) {
    FillProblem problem;
    problem.node_room = std::move(nodes);
    problem.account_room = std::move(accounts);
    problem.account_own = problem.account_room;
    problem.items = std::move(items);
    return problem;
}

TEST(WaterFill, GivesTheMostValuableBytesFirst) {
    EXPECT_EQ(
        water_fill(problem_of({10}, {99}, {item(0, 0, 6, 1), item(0, 0, 7, 2), item(0, 0, 9, 0)})),
        (Amounts{3, 7, 0}));
}

// Greedily the first item takes both the node and the account, and the other two stay out.
FillProblem greed_is_not_enough() {
    return problem_of({1, 1}, {1, 1}, {item(0, 0, 1, 10), item(1, 0, 1, 9), item(0, 1, 1, 9)});
}

TEST(WaterFill, ExchangesWhereGreedIsNotEnough) {
    EXPECT_EQ(water_fill(greed_is_not_enough()), (Amounts{0, 1, 1}));
}

TEST(WaterFill, StopsWhenItsWorkIsDone) {
    FillProblem problem = greed_is_not_enough();
    problem.work_max = 0;
    EXPECT_EQ(water_fill(problem), (Amounts{1, 0, 0}));
}

TEST(WaterFill, FillsAccountsWhateverTheBytesAreWorthAndHoweverLittleWorkIsLeft) {
    FillProblem problem =
        problem_of({1, 1}, {1, 1}, {item(0, 0, 1, 100), item(1, 0, 1, 1), item(0, 1, 1, 1)});
    EXPECT_EQ(water_fill(problem), (Amounts{1, 0, 0}));
    problem.fill_accounts = true;
    problem.work_max = 0;
    EXPECT_EQ(water_fill(problem), (Amounts{0, 1, 1}));
}

TEST(WaterFill, FillsAccountsWithTheirMostValuableBytes) {
    FillProblem problem = problem_of(
        {4, 4}, {4, 2}, {item(0, 0, 4, 3), item(1, 0, 4, 2), item(0, 1, 4, 1), item(1, 1, 4, 5)});
    problem.fill_accounts = true;
    EXPECT_EQ(water_fill(problem), (Amounts{4, 0, 0, 2}));
}

TEST(WaterFill, LeavesWhatIsGivenInAnyCase) {
    FillProblem problem = problem_of({2}, {99}, {item(0, 0, 6, 1), item(0, 0, 7, 2)});
    problem.items[0].lower = 3;
    EXPECT_EQ(water_fill(problem), (Amounts{3, 2}));
}

TEST(WaterFill, StopsAtTheCommonRoom) {
    FillProblem problem =
        problem_of({10, 10}, {5, 5, 5}, {item(0, 0, 9, 2), item(1, 1, 9, 1), item(1, 2, 3, 1)});
    problem.account_own = {0, 0, 5};
    problem.common_room = 6;
    EXPECT_EQ(water_fill(problem), (Amounts{5, 1, 3}));
}

// The second account has a byte of its own: only what it takes beyond is taken from the first.
TEST(WaterFill, TakesAnAccountsOwnRoomBeforeTheCommonRoom) {
    FillProblem problem = problem_of({10}, {5, 5}, {item(0, 0, 5, 1), item(0, 1, 3, 2)});
    problem.account_own = {0, 1};
    problem.common_room = 4;
    EXPECT_EQ(water_fill(problem), (Amounts{2, 3}));
}

TEST(WaterFill, AmongEqualsKeepsTheStart) {
    FillProblem problem = problem_of({10}, {99}, {item(0, 0, 10, 1), item(0, 0, 10, 1)});
    problem.items[1].start = 7;
    EXPECT_EQ(water_fill(problem), (Amounts{3, 7}));
}

// Values over many orders of magnitude, most nodes and accounts wanted by more than fits.
FillProblem contended_problem(Prng& prng) {
    FillProblem problem =
        problem_of(std::vector<std::uint64_t>(100, 1000), std::vector<std::uint64_t>(20, 5000), {});
    for (int i = 0; i < 1000; ++i) {
        FillItem it;
        it.node = prng.below(100);
        it.account = static_cast<std::uint32_t>(prng.below(20));
        double value = prng.below(4) == 0 ? 1e-6 : 1;
        for (int piece = 0; piece < 16; ++piece) {
            value *= 0.5 + prng.unit() / 2;
            it.pieces.push_back({1 + prng.below(100), value});
        }
        problem.items.push_back(std::move(it));
    }
    return problem;
}

// It goes on from what it knew before an exchange: beginning anew each time, it takes more than
// twice as long.
TEST(WaterFill, ComesToAnEndSoonWhereManyExchangesPay) {
    constexpr std::size_t kWork = 60'000'000;
    std::size_t left = kWork;
    Prng prng{test_seed()};
    for (int round = 0; round < 10; ++round) {
        const FillProblem problem = contended_problem(prng);
        FillState state{problem};
        for (std::size_t i = 0; i < problem.items.size(); ++i) {
            state.add(i, state.growth(i, problem.items[i].pieces.front().bytes));
        }
        left = exchange(state, left);
    }
    EXPECT_GT(left, 0U);
}

}  // namespace
}  // namespace stoker::control
