#include "operator/core/allocation/grant_fills.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

namespace {

constexpr std::size_t kPartsMax = 64;            // in one node
constexpr std::size_t kPieceCountMax = 400'000;  // with more, nodes have fewer parts
constexpr double kValueOfHeld = 2;  // per byte of the last grant; a new byte is worth at most 1

// The n-th new part has the same value for all fills of a node.
std::vector<ValuePiece> pieces_of(const ClaimTable& table, const Claim& claim, std::size_t parts) {
    std::vector<ValuePiece> pieces;
    const Bytes held = std::min(claim.planned, claim.fill);
    if (held > Bytes::zero()) {
        pieces.push_back({held, kValueOfHeld});
    }
    const std::uint64_t capacity = table.nodes[claim.node].capacity.count();
    const Bytes part{std::max<std::uint64_t>(capacity / parts, 1)};
    for (std::uint64_t i = 1; i <= parts && part * (i - 1) < claim.fill; ++i) {
        const Bytes end = i < parts ? std::min(part * i, claim.fill) : claim.fill;
        if (end > held) {
            pieces.push_back({end, 1 / static_cast<double>(i)});
        }
    }
    return pieces;
}

// The claims with bytes that a fill wants.
std::vector<std::size_t> filled_claims(const ClaimTable& table) {
    std::vector<std::size_t> claims;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        if (table.claims[i].fill > Bytes::zero()) {
            claims.push_back(i);
        }
    }
    return claims;
}

void fill_rooms(
    const ClaimTable& table,
    const std::vector<std::size_t>& claims,
    Rooms rooms,
    ClaimBytes& amounts) {
    const std::size_t parts = std::clamp<std::size_t>(kPieceCountMax / claims.size(), 1, kPartsMax);
    FillProblem problem;
    problem.rooms = std::move(rooms);
    for (const std::size_t i : claims) {
        const Claim& claim = table.claims[i];
        problem.items.push_back(
            {claim.node,
             claim.account,
             pieces_of(table, claim, parts),
             amounts[i],
             std::max(claim.planned, amounts[i])});
    }
    const std::vector<Bytes> filled = water_fill(problem);
    for (std::size_t i = 0; i < claims.size(); ++i) {
        amounts[claims[i]] = filled[i];
    }
}

}  // namespace

void grant_fills(const ClaimTable& table, const std::vector<Bytes>& kept, ClaimBytes& amounts) {
    const std::vector<std::size_t> claims = filled_claims(table);
    if (claims.empty()) {
        return;
    }
    Rooms within = borrowing_rooms(table, amounts, kept);
    const std::vector<Bytes> nominal = nominal_rooms(table, amounts, kept).accounts;
    for (std::size_t i = 0; i < nominal.size(); ++i) {
        within.accounts[i] = std::min(within.accounts[i], nominal[i]);
    }
    fill_rooms(table, claims, std::move(within), amounts);
    fill_rooms(table, claims, borrowing_rooms(table, amounts, kept), amounts);
}

}  // namespace stoker::control
