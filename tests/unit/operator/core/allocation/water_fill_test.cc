#include "operator/core/allocation/water_fill.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using Amounts = std::vector<std::uint64_t>;

FillItem item(
    std::size_t node, std::vector<std::uint32_t> accounts, std::uint64_t bytes, double value) {
    FillItem result;
    result.node = node;
    result.accounts = std::move(accounts);
    result.parts = std::max<std::uint64_t>(result.accounts.size(), 1);
    result.pieces = {{bytes, value}};
    return result;
}

TEST(WaterFill, GivesTheMostValuableBytesFirst) {
    FillProblem problem;
    problem.node_room = {10};
    problem.items = {item(0, {}, 6, 1), item(0, {}, 7, 2), item(0, {}, 9, 0)};
    EXPECT_EQ(water_fill(problem), (Amounts{3, 7, 0}));
}

// Greedily the first item takes both the node and the account, and the other two stay out.
TEST(WaterFill, ExchangesWhereGreedIsNotEnough) {
    FillProblem problem;
    problem.node_room = {1, 1};
    problem.account_room = {1, 1};
    problem.items = {item(0, {0}, 1, 10), item(1, {0}, 1, 9), item(0, {1}, 1, 9)};
    EXPECT_EQ(water_fill(problem), (Amounts{0, 1, 1}));
}

TEST(WaterFill, LeavesWhatIsGivenInAnyCase) {
    FillProblem problem;
    problem.node_room = {2};
    problem.items = {item(0, {}, 6, 1), item(0, {}, 7, 2)};
    problem.items[0].lower = 3;
    EXPECT_EQ(water_fill(problem), (Amounts{3, 2}));
}

TEST(WaterFill, StopsAtTheCommonRoom) {
    FillProblem problem;
    problem.node_room = {10, 10};
    problem.account_room = {5, 5};
    problem.common_room = 6;
    problem.items = {item(0, {0}, 9, 2), item(1, {1}, 9, 1), item(1, {}, 3, 1)};
    EXPECT_EQ(water_fill(problem), (Amounts{5, 1, 3}));
}

TEST(WaterFill, ChargesAnItemOfTwoAccountsHalfToEach) {
    FillProblem problem;
    problem.node_room = {100};
    problem.account_room = {5, 9};
    problem.items = {item(0, {0, 1}, 50, 1)};
    EXPECT_EQ(water_fill(problem), (Amounts{10}));
}

// A byte of the shared item costs the first account half of what one of the other costs.
TEST(WaterFill, PrefersWhatCostsAnAccountLessForTheSameValue) {
    FillProblem problem;
    problem.node_room = {100};
    problem.account_room = {10, 100};
    problem.items = {item(0, {0}, 10, 1.5), item(0, {0, 1}, 20, 1)};
    EXPECT_EQ(water_fill(problem), (Amounts{0, 20}));
}

TEST(WaterFill, AmongEqualsKeepsTheStart) {
    FillProblem problem;
    problem.node_room = {10};
    problem.items = {item(0, {}, 10, 1), item(0, {}, 10, 1)};
    problem.items[1].start = 7;
    EXPECT_EQ(water_fill(problem), (Amounts{3, 7}));
}

TEST(WaterFill, StopsWhenItsWorkIsDone) {
    FillProblem problem;
    problem.work_max = 0;
    problem.node_room = {1, 1};
    problem.account_room = {1, 1};
    problem.items = {item(0, {0}, 1, 10), item(1, {0}, 1, 9), item(0, {1}, 1, 9)};
    EXPECT_EQ(water_fill(problem), (Amounts{1, 0, 0}));
}

}  // namespace
}  // namespace stoker::control
