#include <algorithm>
#include <map>
#include <tuple>

#include "operator/core/allocation/plan_allocation_state.h"

namespace stoker::control {

namespace {

struct Shortages {
    std::map<std::size_t, Bytes> nodes;
    std::map<std::size_t, Bytes> accounts;
    Bytes common{};  // of what accounts may borrow
};

// What jobs are short of: on nodes, or where the node would have room, in their accounts. `ledger`:
// under the targets.
Shortages find_shortages(
    const ClaimTable& table, const PoolDecision& decision, const Ledger& ledger) {
    Shortages result;
    result.common = ledger.overdraft();
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes missing = claim.limit - decision.target[i];
        if (ledger.is_at_limit(claim.account)) {
            result.accounts[claim.account] += missing;
        } else if (ledger.node_room(claim.node) == Bytes::zero()) {
            result.nodes[claim.node] += missing;
        } else {
            result.common += missing;
        }
    }
    return result;
}

}  // namespace

void name_reclaims(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan) {
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        if (claim.resident <= decision.granted[i]) {
            continue;
        }
        const QuotaView& quota = table.accounts[claim.account].quota;
        plan.reclaims.push_back(
            {table.pool.pool,
             table.nodes[claim.node].name,
             claim.uid,
             claim.resident,
             decision.granted[i],
             quota.grace_seconds,
             quota.ns});
    }
}

void name_sweeps(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan) {
    std::vector<const IdleHolding*> idle;
    for (const IdleHolding& holding : table.idle) {
        if (holding.resident > Bytes::zero()) {
            idle.push_back(&holding);
        }
    }
    std::sort(idle.begin(), idle.end(), [](const IdleHolding* a, const IdleHolding* b) {
        return std::tie(a->last_used, a->node, a->uid) < std::tie(b->last_used, b->node, b->uid);
    });
    const Ledger ledger{table, decision.target, Ledger::Borrowing::kYes};
    Shortages missing = find_shortages(table, decision, ledger);
    for (const IdleHolding* holding : idle) {
        Bytes nobody{};
        Bytes& on_node = missing.nodes[holding->node];
        Bytes& in_quota = holding->account ? missing.accounts[*holding->account] : nobody;
        const bool borrows = holding->account && ledger.borrows(*holding->account);
        Bytes& in_common = borrows ? missing.common : nobody;
        if (on_node + in_quota + in_common == Bytes::zero()) {
            continue;
        }
        in_common -= holding->resident;
        on_node -= holding->resident;
        in_quota -= holding->resident;
        plan.sweeps.push_back(
            {table.pool.pool, table.nodes[holding->node].name, holding->uid, holding->resident});
    }
}

}  // namespace stoker::control
