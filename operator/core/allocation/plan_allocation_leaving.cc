#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "operator/core/allocation/plan_allocation_state.h"

namespace stoker::control {

namespace {

struct Shortages {
    std::map<std::size_t, Bytes> nodes;
    std::map<std::size_t, Bytes> accounts;
};

// What jobs are short of: on nodes, or where the node would have room, in their namespaces.
Shortages find_shortages(const ClaimTable& table, const PoolDecision& decision) {
    // Under the targets.
    const Ledger ledger{table, decision.target, Ledger::Borrowing::kYes};
    Shortages result;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes missing = claim.limit - decision.target[i];
        bool by_account = false;
        for (const std::uint32_t account : claim.accounts) {
            if (ledger.account_room(account) < Bytes{claim.parts}) {
                by_account = true;
                result.accounts[account] += charge(claim, missing);
            }
        }
        if (!by_account) {
            result.nodes[claim.node] += missing;
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
        std::optional<std::uint32_t> grace;
        for (const std::uint32_t account : claim.accounts) {
            const std::uint32_t own = table.accounts[account].quota.grace_seconds;
            grace = grace ? std::min(*grace, own) : own;
        }
        plan.reclaims.push_back(
            {table.pool.pool,
             table.nodes[claim.node].name,
             claim.uid,
             claim.resident,
             decision.granted[i],
             grace.value_or(QuotaView{}.grace_seconds)});
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
    Shortages missing = find_shortages(table, decision);
    for (const IdleHolding* holding : idle) {
        Bytes& on_node = missing.nodes[holding->node];
        Bytes* in_quota = nullptr;
        for (std::size_t i = 0; i < table.accounts.size(); ++i) {
            in_quota = table.accounts[i].quota.ns == holding->ns ? &missing.accounts[i] : in_quota;
        }
        // Nor stays what others pay for because its namespace cannot.
        if (holding->handed_over && on_node == Bytes::zero() &&
            (in_quota == nullptr || *in_quota == Bytes::zero())) {
            continue;
        }
        on_node -= holding->resident;
        if (in_quota != nullptr) {
            *in_quota -= holding->resident;
        }
        plan.sweeps.push_back(
            {table.pool.pool, table.nodes[holding->node].name, holding->uid, holding->resident});
    }
}

}  // namespace stoker::control
