#include "operator/core/allocation/fill_exactly.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

using Amounts = std::vector<std::uint64_t>;

FillItem item_of(
    std::size_t node, std::vector<std::uint32_t> accounts, std::vector<FillPiece> pieces) {
    FillItem item;
    item.node = node;
    item.parts = std::max<std::size_t>(accounts.size(), 1);
    item.accounts = std::move(accounts);
    item.pieces = std::move(pieces);
    return item;
}

double value_of(const FillProblem& problem, const Amounts& amounts) {
    double sum = 0;
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
        std::uint64_t left = amounts[i];
        for (const FillPiece& piece : problem.items[i].pieces) {
            const std::uint64_t taken = std::min(left, piece.bytes);
            sum += static_cast<double>(taken) * piece.value;
            left -= taken;
        }
    }
    return sum;
}

void expect_room_for(const FillProblem& problem, const Amounts& amounts) {
    std::vector<std::uint64_t> node_room = problem.node_room;
    std::vector<std::uint64_t> account_room = problem.account_room;
    std::uint64_t common_room = problem.common_room;
    const auto take = [](std::uint64_t& room, std::uint64_t bytes) {
        EXPECT_LE(bytes, room);
        room -= std::min(bytes, room);
    };
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
        const FillItem& item = problem.items[i];
        const std::uint64_t bytes = amounts[i] - item.lower;
        take(node_room[item.node], bytes);
        for (const std::uint32_t account : item.accounts) {
            take(account_room[account], bytes / item.parts);
        }
        if (!item.accounts.empty()) {
            take(common_room, bytes);
        }
    }
}

FillProblem random_problem(Prng& prng, std::size_t item_count, bool shared) {
    constexpr std::size_t kNodes = 6;
    constexpr std::uint32_t kAccounts = 5;
    FillProblem problem;
    for (std::size_t i = 0; i < kNodes; ++i) {
        problem.node_room.push_back(prng.below(1'000'000));
    }
    for (std::uint32_t i = 0; i < kAccounts; ++i) {
        problem.account_room.push_back(prng.below(1'000'000));
    }
    problem.common_room = prng.below(3'000'000);
    for (std::size_t i = 0; i < item_count; ++i) {
        const auto first = static_cast<std::uint32_t>(prng.below(kAccounts));
        std::vector<std::uint32_t> accounts{first};
        if (shared && prng.below(2) == 0) {
            accounts.push_back((first + 1) % kAccounts);
        }
        std::vector<FillPiece> pieces;
        double value = 1 + prng.unit();
        for (int piece = 0; piece < 4; ++piece) {
            pieces.push_back({1 + prng.below(200'000), value});
            value *= prng.unit();
        }
        problem.items.push_back(item_of(prng.below(kNodes), std::move(accounts), pieces));
    }
    return problem;
}

// By value alone the shared item would come first, and keep the two others out.
TEST(FillExactly, LeavesOutWhatTakesTheRoomOfTwo) {
    FillProblem problem;
    problem.node_room = {1000, 1000, 1000};
    problem.account_room = {100, 100};
    problem.items = {
        item_of(0, {0, 1}, {{200, 1.5}}),
        item_of(1, {0}, {{100, 1.0}}),
        item_of(2, {1}, {{100, 1.0}})};
    EXPECT_EQ(fill_exactly(problem), (Amounts{200, 0, 0}));
    problem.items[1].pieces[0].value = 2.5;
    EXPECT_EQ(fill_exactly(problem), (Amounts{0, 100, 100}));
}

TEST(FillExactly, StartsFromWhatIsGivenInAnyCase) {
    FillProblem problem;
    problem.node_room = {50};
    problem.account_room = {1000};
    problem.items = {item_of(0, {0}, {{100, 2.0}, {100, 1.0}}), item_of(0, {0}, {{30, 1.5}})};
    problem.items[0].lower = 90;
    EXPECT_EQ(fill_exactly(problem), (Amounts{110, 30}));
}

TEST(FillExactly, HasNothingToSayOfNothingAndOfTooMuch) {
    FillProblem problem;
    EXPECT_EQ(fill_exactly(problem), std::nullopt);
    problem.node_room.assign(64, 1);
    problem.items = {item_of(0, {}, {{1, 1.0}})};
    EXPECT_EQ(fill_exactly(problem), std::nullopt);
}

// Where no item has two accounts, exchanges along positive cycles are exact as well.
TEST(FillExactly, IsWorthWhatTheFlowIsWorth) {
    Prng prng{test_seed()};
    for (int round = 0; round < 300; ++round) {
        const FillProblem problem = random_problem(prng, 1 + prng.below(20), false);
        const auto exact = fill_exactly(problem);
        ASSERT_TRUE(exact);
        expect_room_for(problem, *exact);
        const double flow = value_of(problem, water_fill(problem));
        EXPECT_NEAR(value_of(problem, *exact), flow, 1e-4 * flow + 100) << "round " << round;
    }
}

TEST(FillExactly, NeverTakesMoreThanThereIsWhereAccountsShare) {
    Prng prng{test_seed()};
    for (int round = 0; round < 300; ++round) {
        const FillProblem problem = random_problem(prng, 1 + prng.below(60), true);
        const auto exact = fill_exactly(problem);
        ASSERT_TRUE(exact);
        expect_room_for(problem, *exact);
        const Amounts filled = water_fill(problem);
        expect_room_for(problem, filled);
        EXPECT_GE(value_of(problem, filled), 0.9999 * value_of(problem, *exact) - 100);
    }
}

}  // namespace
}  // namespace stoker::control
