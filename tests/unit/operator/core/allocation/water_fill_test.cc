#include "operator/core/allocation/water_fill.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using Amounts = std::vector<std::uint64_t>;

// The amounts as numbers of bytes.
Amounts filled(const FillProblem& problem) {
    Amounts result;
    for (const Bytes bytes : water_fill(problem)) {
        result.push_back(bytes.count());
    }
    return result;
}

std::vector<Bytes> bytes_of(const Amounts& counts) {
    std::vector<Bytes> result;
    for (const std::uint64_t count : counts) {
        result.emplace_back(count);
    }
    return result;
}

FillItem item(std::size_t node, std::uint32_t account, std::uint64_t bytes, double value) {
    FillItem result;
    result.node = node;
    result.account = account;
    result.pieces = {{Bytes{bytes}, value}};
    return result;
}

FillProblem problem_of(const Amounts& nodes, const Amounts& accounts, std::vector<FillItem> items) {
    FillProblem problem;
    problem.rooms.nodes = bytes_of(nodes);
    problem.rooms.accounts = bytes_of(accounts);
    problem.rooms.own = problem.rooms.accounts;
    problem.items = std::move(items);
    return problem;
}

TEST(WaterFill, GivesTheMostValuableBytesFirst) {
    EXPECT_EQ(
        filled(problem_of({10}, {99}, {item(0, 0, 6, 1), item(0, 0, 7, 2), item(0, 0, 9, 0)})),
        (Amounts{3, 7, 0}));
}

// Filling by value alone gives the first item the only byte of node 0 and of account 0. Then the
// other two items, which are worth more together, get no bytes.
FillProblem greed_is_not_enough() {
    return problem_of({1, 1}, {1, 1}, {item(0, 0, 1, 10), item(1, 0, 1, 9), item(0, 1, 1, 9)});
}

TEST(WaterFill, ImprovesGreedyResultByExchange) {
    EXPECT_EQ(filled(greed_is_not_enough()), (Amounts{0, 1, 1}));
}

TEST(WaterFill, StopsAtItsWorkLimit) {
    FillProblem problem = greed_is_not_enough();
    problem.work_max = 0;
    EXPECT_EQ(filled(problem), (Amounts{1, 0, 0}));
}

TEST(WaterFill, FillsAccountsAtAnyValueAndWorkLimit) {
    FillProblem problem =
        problem_of({1, 1}, {1, 1}, {item(0, 0, 1, 100), item(1, 0, 1, 1), item(0, 1, 1, 1)});
    EXPECT_EQ(filled(problem), (Amounts{1, 0, 0}));
    problem.fill_accounts = true;
    problem.work_max = 0;
    EXPECT_EQ(filled(problem), (Amounts{0, 1, 1}));
}

TEST(WaterFill, FillsAccountsWithTheirMostValuableBytes) {
    FillProblem problem = problem_of(
        {4, 4}, {4, 2}, {item(0, 0, 4, 3), item(1, 0, 4, 2), item(0, 1, 4, 1), item(1, 1, 4, 5)});
    problem.fill_accounts = true;
    EXPECT_EQ(filled(problem), (Amounts{4, 0, 0, 2}));
}

TEST(WaterFill, KeepsLowerAmounts) {
    FillProblem problem = problem_of({2}, {99}, {item(0, 0, 6, 1), item(0, 0, 7, 2)});
    problem.items[0].lower = Bytes{3};
    EXPECT_EQ(filled(problem), (Amounts{3, 2}));
}

TEST(WaterFill, StaysWithinTheCommonRoom) {
    FillProblem problem =
        problem_of({10, 10}, {5, 5, 5}, {item(0, 0, 9, 2), item(1, 1, 9, 1), item(1, 2, 3, 1)});
    problem.rooms.own = bytes_of({0, 0, 5});
    problem.rooms.common = Bytes{6};
    EXPECT_EQ(filled(problem), (Amounts{5, 1, 3}));
}

// Own room is for one account, common room for all. The second account has one byte of its own; its
// other two bytes and all bytes of the first account use the common room.
TEST(WaterFill, UsesOwnRoomBeforeTheCommonRoom) {
    FillProblem problem = problem_of({10}, {5, 5}, {item(0, 0, 5, 1), item(0, 1, 3, 2)});
    problem.rooms.own = bytes_of({0, 1});
    problem.rooms.common = Bytes{4};
    EXPECT_EQ(filled(problem), (Amounts{2, 3}));
}

TEST(WaterFill, PrefersTheStartAmountsOfItemsOfEqualValue) {
    FillProblem problem = problem_of({10}, {99}, {item(0, 0, 10, 1), item(0, 0, 10, 1)});
    problem.items[1].start = Bytes{7};
    EXPECT_EQ(filled(problem), (Amounts{3, 7}));
}

}  // namespace
}  // namespace stoker::control
