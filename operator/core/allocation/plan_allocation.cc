#include "operator/core/allocation/plan_allocation.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "operator/core/allocation/decide_pool.h"
#include "operator/core/allocation/explain_pool.h"

namespace stoker::control {

namespace {

// Bytes that jobs lack, or that fills lack beyond those.
struct Shortages {
    std::map<std::size_t, std::map<std::uint32_t, Bytes>> nodes;  // by node, account
    std::map<std::size_t, Bytes> accounts;
    Bytes common{};  // room that any account could borrow
    bool of_fills = false;
};

// The bytes `missing` from `amounts`: on nodes, or in their accounts if the node has room.
Shortages find_shortages(
    const ClaimTable& table, const ClaimBytes& amounts, const ClaimBytes& missing) {
    const Rooms rooms = borrowing_rooms(table, amounts);
    Shortages result;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        if (rooms.accounts[claim.account] == Bytes::zero()) {
            result.accounts[claim.account] += missing[i];
        } else if (rooms.nodes[claim.node] == Bytes::zero()) {
            result.nodes[claim.node][claim.account] += missing[i];
        } else {
            result.common += missing[i];
        }
    }
    return result;
}

// Bytes that jobs lack, as if there were no fills.
Shortages shortages_of_jobs(const ClaimTable& table, const PoolDecision& decision) {
    ClaimBytes missing;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        missing.push_back(table.claims[i].limit - decision.by_jobs[i]);
    }
    Shortages result = find_shortages(table, decision.by_jobs, missing);
    result.common += overdraft_of(table, decision.by_jobs);
    return result;
}

Shortages shortages_of_fills(const ClaimTable& table, const PoolDecision& decision) {
    ClaimBytes missing;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        missing.push_back(
            (claim.most() - decision.target[i]) - (claim.limit - decision.by_jobs[i]));
    }
    Shortages result = find_shortages(table, decision.target, missing);
    result.of_fills = true;
    return result;
}

// Covers `need` from `bytes` as far as possible: reduces both.
void pay(Bytes& need, Bytes& bytes) {
    const Bytes paid = std::min(need, bytes);
    need -= paid;
    bytes -= paid;
}

// Adds a reclaim for each claim with more bytes than granted.
void name_reclaims(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan) {
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        if (claim.resident <= decision.granted[i] || decision.withheld[i]) {
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

// Outstanding grants of idle datasets, by node and by account.
struct IdleGrants {
    std::vector<Bytes> nodes;
    std::vector<Bytes> accounts;
};

IdleGrants idle_grants(const ClaimTable& table) {
    IdleGrants result;
    std::ranges::transform(table.nodes, std::back_inserter(result.nodes), &PlannedNode::idle);
    std::ranges::transform(table.accounts, std::back_inserter(result.accounts), &Account::idle);
    for (const IdleHolding& holding : table.idle) {
        result.nodes[holding.node] -= holding.resident;
        if (holding.account) {
            result.accounts[*holding.account] -= holding.resident;
        }
    }
    return result;
}

// Outstanding grants of idle datasets expire by themselves, so no idle bytes are swept for the
// space that they reserve.
void forgive_grants(IdleGrants& grants, Shortages& missing) {
    for (auto& [node, needs] : missing.nodes) {
        for (auto& entry : needs) {
            pay(entry.second, grants.nodes[node]);
        }
    }
    for (std::size_t i = 0; i < grants.accounts.size(); ++i) {
        Bytes common = grants.accounts[i];
        pay(missing.accounts[i], grants.accounts[i]);
        pay(missing.common, common);
    }
}

// Idle holdings that may be swept, least recently used first.
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

// An idle holding, and its bytes not yet set against what is missing in each place.
struct Offer {
    const IdleHolding* holding = nullptr;
    Bytes node{};
    Bytes account{};
    Bytes common{};
    bool is_swept = false;
};

// Charge of each account if the claims have `amounts` and the sweeps are done.
std::vector<Bytes> uses_after(
    const ClaimTable& table, const ClaimBytes& amounts, const std::vector<Offer>& offers) {
    std::vector<Bytes> used = account_uses(table, amounts);
    for (const Offer& offer : offers) {
        if (offer.is_swept && offer.holding->account) {
            used[*offer.holding->account] -= offer.holding->resident;
        }
    }
    return used;
}

// Sweeps the bytes if they help somebody, and subtracts them from what is missing. A fill gets no
// idle bytes that the nominal quota of another namespace covers. `borrows`: the holding's account
// exceeds its nominal quota.
void use_for(Offer& offer, bool borrows, Shortages& missing) {
    const std::optional<std::uint32_t> owner = offer.holding->account;
    const bool is_open = borrows || offer.is_swept;
    const auto take = [&](Bytes& need, Bytes& bytes) {
        offer.is_swept |= need > Bytes::zero() && bytes > Bytes::zero();
        pay(need, bytes);
    };
    if (owner) {
        take(missing.accounts[*owner], offer.account);
    }
    if (owner && is_open) {
        take(missing.common, offer.common);
    }
    for (auto& [account, need] : missing.nodes[offer.holding->node]) {
        if (!missing.of_fills || is_open || !owner || account == *owner) {
            take(need, offer.node);
        }
    }
}

// Adds sweeps of idle bytes: only as many as needed. Sweeps for jobs do not depend on fills.
void name_sweeps(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan) {
    std::vector<Offer> offers;
    for (const IdleHolding* holding : sweepable(table)) {
        offers.push_back({holding, holding->resident, holding->resident, holding->resident});
    }
    IdleGrants grants = idle_grants(table);
    for (Shortages missing :
         {shortages_of_jobs(table, decision), shortages_of_fills(table, decision)}) {
        const ClaimBytes& amounts = missing.of_fills ? decision.target : decision.by_jobs;
        forgive_grants(grants, missing);
        std::ranges::stable_partition(offers, std::identity{}, &Offer::is_swept);
        std::vector<Bytes> used = uses_after(table, amounts, offers);
        for (Offer& offer : offers) {
            const std::optional<std::uint32_t> owner = offer.holding->account;
            const bool was_swept = offer.is_swept;
            use_for(offer, owner && used[*owner] > table.accounts[*owner].quota.nominal, missing);
            if (owner && offer.is_swept && !was_swept) {
                used[*owner] -= offer.holding->resident;
            }
        }
    }
    for (const Offer& offer : offers) {
        if (offer.is_swept) {
            const IdleHolding& holding = *offer.holding;
            plan.sweeps.push_back(
                {table.pool.pool, table.nodes[holding.node].name, holding.uid, holding.resident});
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
        const std::string& node = table.nodes[claim.node].name;
        plan.targets.push_back({table.pool.pool, node, claim.uid, decision.target[i]});
        plan.granted_in_pool[table.pool.pool] += decision.granted[i];
        if (decision.withheld[i]) {
            continue;
        }
        Grant& grant = grants[{node, claim.uid}];
        grant.node = node;
        grant.dataset_uid = claim.uid;
        grant.resident_bytes = std::max(grant.resident_bytes, decision.granted[i]);
        grant.valid_seconds = valid_seconds;
        grant.origin_bytes_per_second = decision.origin_limit[i];
        // Reason of the claim's first job: highest priority, then oldest.
        grant.reason = to_string(plan.jobs[first_job + claim.first_user().job].reason);
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
