#include "operator/core/allocation/grant_fills.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

namespace {

constexpr std::uint64_t kParts = 64;  // of a node
constexpr double kValueOfHeld = 2;    // of a byte of the last grant; new bytes are worth at most 1

// The n-th new part has the same value for all fills of a node.
std::vector<ValuePiece> pieces_of(const ClaimTable& table, const Claim& claim) {
    std::vector<ValuePiece> pieces;
    const Bytes held = std::min(claim.held, claim.fill);
    if (held > Bytes::zero()) {
        pieces.push_back({held, kValueOfHeld});
    }
    const std::uint64_t capacity = table.nodes[claim.node].capacity.count();
    const Bytes part{std::max<std::uint64_t>(capacity / kParts, 1)};
    for (std::uint64_t i = 1; i <= kParts && part * (i - 1) < claim.fill; ++i) {
        const Bytes end = i < kParts ? std::min(part * i, claim.fill) : claim.fill;
        if (end > held) {
            pieces.push_back({end, 1 / static_cast<double>(i)});
        }
    }
    return pieces;
}

ClaimBytes fill_rooms(const ClaimTable& table, Rooms rooms, const ClaimBytes& amounts) {
    FillProblem problem;
    problem.rooms = std::move(rooms);
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const Claim& claim = table.claims[i];
        problem.items.push_back(
            {claim.node,
             claim.account,
             pieces_of(table, claim),
             amounts[i],
             std::max(claim.held, amounts[i])});
    }
    return water_fill(problem);
}

}  // namespace

void grant_fills(const ClaimTable& table, const std::vector<Bytes>& kept, ClaimBytes& amounts) {
    if (std::ranges::none_of(
            table.claims, [](const Claim& claim) { return claim.fill > Bytes::zero(); })) {
        return;
    }
    Rooms within = borrowing_rooms(table, amounts, kept);
    const std::vector<Bytes> nominal = nominal_rooms(table, amounts, kept).accounts;
    for (std::size_t i = 0; i < nominal.size(); ++i) {
        within.accounts[i] = std::min(within.accounts[i], nominal[i]);
    }
    amounts = fill_rooms(table, std::move(within), amounts);
    amounts = fill_rooms(table, borrowing_rooms(table, amounts, kept), amounts);
}

}  // namespace stoker::control
