#include "operator/core/allocation/exchange.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

// Values span many orders of magnitude, and most nodes and accounts are overcommitted.
FillProblem contended_problem(Prng& prng) {
    FillProblem problem;
    problem.rooms.nodes.assign(100, Bytes{1000});
    problem.rooms.accounts.assign(20, Bytes{5000});
    problem.rooms.own = problem.rooms.accounts;
    for (int i = 0; i < 1000; ++i) {
        FillItem it;
        it.node = prng.below(100);
        it.account = static_cast<std::uint32_t>(prng.below(20));
        Bytes end{};
        double value = prng.below(4) == 0 ? 1e-6 : 1;
        for (int piece = 0; piece < 16; ++piece) {
            value *= 0.5 + prng.unit() / 2;
            end += Bytes{1 + prng.below(100)};
            it.pieces.push_back({end, value});
        }
        problem.items.push_back(std::move(it));
    }
    return problem;
}

// exchange() keeps the value sums of its paths from one exchange to the next; computing them anew
// each time would take more than twice the work.
TEST(Exchange, FinishesWithinWorkLimitWithManyExchanges) {
    constexpr std::size_t kWork = 60'000'000;
    std::size_t left = kWork;
    Prng prng{test_seed()};
    for (int round = 0; round < 10; ++round) {
        const FillProblem problem = contended_problem(prng);
        Rooms rooms = problem.rooms;
        std::vector<Bytes> amounts;
        for (const FillItem& item : problem.items) {
            const Bytes wanted = item.pieces.front().end;
            amounts.push_back(rooms.growth(item.node, item.account, wanted));
            rooms.take(item.node, item.account, amounts.back());
        }
        left = exchange(problem, left, amounts);
    }
    EXPECT_GT(left, 0U);
}

}  // namespace
}  // namespace stoker::control
