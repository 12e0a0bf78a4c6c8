#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/rooms.h"

// Divides bytes by marginal value under two limits at once: each item lies on one node and is
// charged to one account. Pure arithmetic without names; decide_pool() builds the problem.
namespace stoker::control {

struct ValuePiece {
    Bytes end{};       // from the start of the item
    double value = 0;  // per byte; at most that of the previous piece
};

struct FillItem {
    std::size_t node = 0;
    std::uint32_t account = 0;
    std::vector<ValuePiece> pieces;
    Bytes lower{};  // given in any case; `rooms` does not include it
    Bytes start{};  // first guess; affects ties only
};

struct FillProblem {
    Rooms rooms;
    // True: maximizes the number of bytes first, then their value; no account gives up bytes for
    // another one. The rooms of accounts are those of a Guarantee.
    bool fill_accounts = false;
    std::vector<FillItem> items;
    std::size_t work_max = 200'000'000;  // limit of the exchange's steps
};

// Amounts that maximize the sum of values. Fills greedily by value, then calls exchange(), which is
// optimal unless work_max ends it. Deterministic; the order of the items only breaks ties.
std::vector<Bytes> water_fill(const FillProblem& problem);

}  // namespace stoker::control
