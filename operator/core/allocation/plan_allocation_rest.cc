#include <algorithm>

#include "operator/core/allocation/plan_allocation_state.h"

namespace stoker::control {

namespace {

constexpr std::uint64_t kPartsMoved = 4;  // of each such dataset, by turns of two plans
constexpr std::uint64_t kExactTo = std::uint64_t{1}
                                   << 22U;  // of a claim, so fine is fill_exactly()

// Bytes that rounding alone may move between claims: whole parts of the datasets that several
// namespaces pay for.
std::uint64_t rounding_of(const ClaimTable& table) {
    std::uint64_t result = 0;
    for (const Claim& claim : table.claims) {
        result += claim.parts > 1 ? kPartsMoved * claim.parts : 0;
    }
    return result;
}

Bytes difference(Bytes a, Bytes b) {
    return std::max(a, b) - std::min(a, b);
}

// Whether what is granted now breaks no promise and no limit.
bool may_stay(const ClaimTable& table, const ClaimBytes& held, const ClaimBytes& lower) {
    std::vector<Bytes> on_node(table.nodes.size());
    const Ledger ledger{table, held, Ledger::Borrowing::kYes};
    for (std::size_t i = 0; i < held.size(); ++i) {
        const Claim& claim = table.claims[i];
        // Minimums, too, are given in whole parts.
        const Bytes promised = lower[i] - Bytes{claim.parts - 1};
        if (held[i] < promised || held[i] > claim.limit || ledger.is_overdrawn(claim)) {
            return false;
        }
        on_node[claim.node] += held[i];
    }
    for (std::size_t node = 0; node < on_node.size(); ++node) {
        if (on_node[node] > table.nodes[node].capacity - table.nodes[node].idle) {
            return false;
        }
    }
    return true;
}

}  // namespace

void rest_where_only_rounding_moves(const ClaimTable& table, PoolDecision& decision) {
    const std::uint64_t rounding = rounding_of(table);
    ClaimBytes held;
    std::vector<Bytes> least;  // less is no move
    bool shrinks = false;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        least.emplace_back(rounding + claim.limit.count() / kExactTo);
        if (rounding == 0 || difference(decision.granted[i], claim.held) > least[i]) {
            return;
        }
        shrinks = shrinks || decision.granted[i] < claim.held;
        held.push_back(claim.held);
    }
    if (!shrinks || !may_stay(table, held, decision.lower)) {
        return;
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
        if (difference(decision.target[i], held[i]) <= least[i]) {
            // What is borrowed stays borrowed.
            decision.within[i] = decision.within[i] + held[i] - decision.target[i];
            decision.target[i] = held[i];
        }
    }
    decision.granted = std::move(held);
}

}  // namespace stoker::control
