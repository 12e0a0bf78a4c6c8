#include "operator/core/allocation/plan_allocation.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "operator/core/allocation/decide_pool.h"
#include "operator/core/allocation/explain_pool.h"

namespace stoker::control {

namespace {

struct Shortages {
    std::map<std::size_t, Bytes> nodes;
    std::map<std::size_t, Bytes> accounts;
    Bytes common{};  // room that any account could borrow
};

// Bytes that jobs lack under the targets: on nodes, or in their accounts if the node has room.
Shortages find_shortages(const ClaimTable& table, const ClaimBytes& target) {
    const Rooms rooms = borrowing_rooms(table, target);
    Shortages result;
    result.common = overdraft_of(table, target);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes missing = claim.limit - target[i];
        if (rooms.accounts[claim.account] == Bytes::zero()) {
            result.accounts[claim.account] += missing;
        } else if (rooms.nodes[claim.node] == Bytes::zero()) {
            result.nodes[claim.node] += missing;
        } else {
            result.common += missing;
        }
    }
    return result;
}

// Adds a reclaim for each claim with more bytes than granted.
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

// Outstanding grants of idle datasets expire by themselves, so no idle bytes are swept for the
// space that they reserve.
void forgive_grants(const ClaimTable& table, Shortages& missing) {
    std::vector<Bytes> nodes;
    std::vector<Bytes> accounts;
    std::ranges::transform(table.nodes, std::back_inserter(nodes), &PlannedNode::idle);
    std::ranges::transform(table.accounts, std::back_inserter(accounts), &Account::idle);
    for (const IdleHolding& holding : table.idle) {
        nodes[holding.node] -= holding.resident;
        if (holding.account) {
            accounts[*holding.account] -= holding.resident;
        }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        missing.nodes[i] -= nodes[i];
    }
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        missing.accounts[i] -= accounts[i];
        missing.common -= accounts[i];
    }
}

// Adds sweeps of idle bytes: least recently used first, only as many as needed.
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
    const std::vector<Bytes> used = account_uses(table, decision.target);
    Shortages missing = find_shortages(table, decision.target);
    forgive_grants(table, missing);
    for (const IdleHolding* holding : idle) {
        Bytes nobody{};
        Bytes& on_node = missing.nodes[holding->node];
        Bytes& in_quota = holding->account ? missing.accounts[*holding->account] : nobody;
        const bool borrows =
            holding->account &&
            used[*holding->account] > table.accounts[*holding->account].quota.nominal;
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

using GrantsByPlace = std::map<std::pair<std::string, std::string>, Grant>;  // node, uid

// `first_job`: index of the table's first job in the plan.
void add_grants(
    const ClaimTable& table,
    const PoolDecision& decision,
    std::uint32_t valid_seconds,
    std::size_t first_job,
    AllocationPlan& plan,
    GrantsByPlace& grants) {
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        Grant& grant = grants[{table.nodes[claim.node].name, claim.uid}];
        grant.node = table.nodes[claim.node].name;
        grant.dataset_uid = claim.uid;
        grant.resident_bytes = std::max(grant.resident_bytes, decision.granted[i]);
        grant.valid_seconds = valid_seconds;
        grant.origin_bytes_per_second = decision.origin_limit[i];
        // Reason of the claim's first job: highest priority, then oldest.
        grant.reason = to_string(plan.jobs[first_job + claim.first_user().job].reason);
        plan.granted_in_pool[table.pool.pool] += decision.granted[i];
    }
}

}  // namespace

AllocationPlan plan_allocation(const AllocationView& view) {
    AllocationPlan plan;
    GrantsByPlace grants;
    for (const auto& [pool, table] : make_claim_tables(view)) {
        const PoolDecision decision = decide_pool(table);
        const std::size_t first_job = plan.jobs.size();
        explain_pool(table, decision, plan);
        name_reclaims(table, decision, plan);
        name_sweeps(table, decision, plan);
        add_grants(table, decision, view.valid_seconds, first_job, plan, grants);
    }
    for (auto& entry : grants) {
        plan.grants.push_back(std::move(entry.second));
    }
    const auto by_job = [](const auto& a, const auto& b) { return a.job < b.job; };
    std::sort(plan.jobs.begin(), plan.jobs.end(), by_job);
    std::sort(plan.charges.begin(), plan.charges.end(), by_job);
    const auto by_place = [](const auto& a, const auto& b) {
        return std::tie(a.node, a.dataset_uid) < std::tie(b.node, b.dataset_uid);
    };
    std::sort(plan.reclaims.begin(), plan.reclaims.end(), by_place);
    std::sort(plan.sweeps.begin(), plan.sweeps.end(), by_place);
    std::sort(plan.quotas.begin(), plan.quotas.end(), [](const auto& a, const auto& b) {
        return std::tie(a.ns, a.pool) < std::tie(b.ns, b.pool);
    });
    return plan;
}

}  // namespace stoker::control
