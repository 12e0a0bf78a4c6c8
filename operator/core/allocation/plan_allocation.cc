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
    std::map<std::size_t, Bytes> nodes;  // of jobs
    std::map<std::size_t, Bytes> accounts;
    Bytes common{};  // room that any account could borrow
    std::map<std::size_t, std::map<std::uint32_t, Bytes>> fills;  // by node, account
};

// Bytes that jobs and fills lack under the targets: on nodes, or in their accounts if the node has
// room.
Shortages find_shortages(const ClaimTable& table, const PoolDecision& decision) {
    const Rooms rooms = borrowing_rooms(table, decision.target);
    Shortages result;
    result.common = overdraft_of(table, decision.target);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes missing = claim.most() - decision.target[i];
        if (rooms.accounts[claim.account] == Bytes::zero()) {
            result.accounts[claim.account] += missing;
        } else if (rooms.nodes[claim.node] == Bytes::zero()) {
            const Bytes by_jobs = std::min(missing, claim.limit - decision.by_jobs[i]);
            result.nodes[claim.node] += by_jobs;
            result.fills[claim.node][claim.account] += missing - by_jobs;
        } else {
            result.common += missing;
        }
    }
    return result;
}

// Moves as many bytes of `bytes` to `need` as that lacks.
void pay(Bytes& need, Bytes& bytes) {
    const Bytes paid = std::min(need, bytes);
    need -= paid;
    bytes -= paid;
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
        pay(missing.nodes[i], nodes[i]);
        for (auto& entry : missing.fills[i]) {
            pay(entry.second, nodes[i]);
        }
    }
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        missing.accounts[i] -= accounts[i];
        missing.common -= accounts[i];
    }
}

// Least recently used first.
std::vector<const IdleHolding*> sweepable(const ClaimTable& table) {
    std::vector<const IdleHolding*> idle;
    for (const IdleHolding& holding : table.idle) {
        if (holding.resident > Bytes::zero()) {
            idle.push_back(&holding);
        }
    }
    std::sort(idle.begin(), idle.end(), [](const IdleHolding* a, const IdleHolding* b) {
        return std::tie(a->last_used, a->node, a->uid) < std::tie(b->last_used, b->node, b->uid);
    });
    return idle;
}

// Whether the bytes help somebody; subtracts them from what is missing. A fill gets no idle bytes
// that the nominal quota of another namespace covers. `borrows`: the holding's account exceeds its
// nominal quota.
bool use_for(const IdleHolding& holding, bool borrows, Shortages& missing) {
    bool is_useful = false;
    const auto take = [&](Bytes& need, Bytes bytes) {
        is_useful |= need > Bytes::zero();
        pay(need, bytes);
        return bytes;
    };
    if (holding.account) {
        take(missing.accounts[*holding.account], holding.resident);
    }
    if (borrows) {
        take(missing.common, holding.resident);
    }
    Bytes left = take(missing.nodes[holding.node], holding.resident);
    for (auto& [account, need] : missing.fills[holding.node]) {
        if (borrows || !holding.account || account == *holding.account) {
            left = take(need, left);
        }
    }
    return is_useful;
}

// Adds sweeps of idle bytes: only as many as needed.
void name_sweeps(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan) {
    const std::vector<Bytes> used = account_uses(table, decision.target);
    Shortages missing = find_shortages(table, decision);
    forgive_grants(table, missing);
    for (const IdleHolding* holding : sweepable(table)) {
        const bool borrows =
            holding->account &&
            used[*holding->account] > table.accounts[*holding->account].quota.nominal;
        if (use_for(*holding, borrows, missing)) {
            plan.sweeps.push_back(
                {table.pool.pool,
                 table.nodes[holding->node].name,
                 holding->uid,
                 holding->resident});
        }
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
        if (decision.fill_origin) {
            plan.fill_origins.push_back(*decision.fill_origin);
        }
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
