#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/rooms.h"

// Divides bytes by marginal value under two kinds of limit at once: each item lies on one node and
// is charged to one account. Pure arithmetic without names; decide_pool() makes the problem.
namespace stoker::control {

struct ValuePiece {
    Bytes end{};       // from the item's zero
    double value = 0;  // per byte; never more than that of the piece before it
};

struct FillItem {
    std::size_t node = 0;
    std::uint32_t account = 0;
    std::vector<ValuePiece> pieces;
    Bytes lower{};  // given in any case, the rooms below are beyond it
    Bytes start{};  // where to start from; the result never depends on it but for ties
};

struct FillProblem {
    Rooms rooms;
    // As many bytes as can be, whatever they are worth, and then the most valuable: no account
    // gives bytes up for another one. The rooms of accounts are those of a Guarantee.
    bool fill_accounts = false;
    std::vector<FillItem> items;
    std::size_t work_max = 200'000'000;  // bound on the steps of the exchange
};

// The amount of each item that makes the sum of values largest. First greedily in the order of
// value, then by exchange(), which is optimal unless work_max ends it. Deterministic; the order of
// the items only breaks ties.
std::vector<Bytes> water_fill(const FillProblem& problem);

}  // namespace stoker::control
