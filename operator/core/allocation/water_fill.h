#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

// Divides bytes by marginal value under two kinds of limit at once: each item lies on one node and
// is charged to one account. Pure arithmetic without names; plan_allocation() makes the problem.
namespace stoker::control {

struct FillPiece {
    std::uint64_t bytes = 0;
    double value = 0;  // per byte; never more than that of the piece before it
};

struct FillItem {
    std::size_t node = 0;
    std::uint32_t account = 0;
    std::vector<FillPiece> pieces;
    std::uint64_t lower = 0;  // given in any case, the rooms below are beyond it
    std::uint64_t start = 0;  // where to start from; the result never depends on it but for ties
};

struct FillProblem {
    static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

    std::vector<std::uint64_t> node_room;
    std::vector<std::uint64_t> account_room;
    // The part of each account's room that is not common room. As many as accounts.
    std::vector<std::uint64_t> account_own;
    std::uint64_t common_room = kNoLimit;
    // As many bytes as can be, whatever they are worth, and then the most valuable: no account
    // gives bytes up for another one. The rooms of accounts are those of a Guarantee.
    bool fill_accounts = false;
    std::vector<FillItem> items;
    std::size_t work_max = 200'000'000;  // bound on the steps of the exchange
};

// The amount of each item that makes the sum of values largest. First greedily in the order of
// value, then by exchanges along positive cycles of the residual network (Klein 1967), which is
// optimal unless work_max ends it. Deterministic; the order of the items only breaks ties.
std::vector<std::uint64_t> water_fill(const FillProblem& problem);

}  // namespace stoker::control
