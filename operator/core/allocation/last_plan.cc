#include "operator/core/allocation/last_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "operator/core/allocation/claim_value.h"
#include "operator/core/allocation/rooms.h"

namespace stoker::control {

namespace {

constexpr double kRounding = 1e-14;  // relative error of value_at()

// Whether the claims may have `last` instead of the targets: within node capacities, account limits
// and the claims' own limits, with the minimums, and without reducing owed bytes. `slack`: bytes that
// an account may lack whose owed bytes depend on the last plan (kept_lent()).
bool fits(
    const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& last, Bytes slack) {
    const std::vector<Bytes> used = account_uses(table, last);
    const std::vector<Bytes> planned = account_uses(table, decision.target);
    std::vector<Bytes> owed = decision.owed;
    std::vector<Bytes> room = nominal_rooms(table, decision.target).nodes;
    for (std::size_t i = 0; i < last.size(); ++i) {
        owed[table.claims[i].account] += decision.lower[i];
        room[table.claims[i].node] += decision.target[i];
    }
    for (std::size_t i = 0; i < last.size(); ++i) {
        const Claim& claim = table.claims[i];
        if (last[i] > claim.limit || last[i] < std::min(decision.target[i], decision.lower[i]) ||
            last[i] > room[claim.node] ||
            used[claim.account] > table.accounts[claim.account].most()) {
            return false;
        }
        room[claim.node] -= last[i];
    }
    for (std::size_t i = 0; i < owed.size(); ++i) {
        const bool lends = table.accounts[i].quota.reclaim != ReclaimPolicy::kAny;
        if (used[i] + (lends ? slack : Bytes::zero()) < std::min(owed[i], planned[i])) {
            return false;
        }
    }
    return overdraft_of(table, last) == Bytes::zero();
}

Bytes sum(const ClaimBytes& amounts) {
    Bytes result{};
    for (const Bytes bytes : amounts) {
        result += bytes;
    }
    return result;
}

}  // namespace

bool has_value(Objective objective) {
    return objective == Objective::kThroughput || objective == Objective::kCost;
}

void ValueChange::add(const ClaimTable& table, const Claim& claim, Bytes before, Bytes after) {
    if (before == after) {
        return;
    }
    const double old_value = value_at(table, claim, before);
    const double new_value = value_at(table, claim, after);
    gain_ += std::max(new_value - old_value, 0.0);
    loss_ += std::max(old_value - new_value, 0.0);
    noise_ += kRounding * (old_value + new_value);
}

ClaimBytes last_targets(const ClaimTable& table) {
    ClaimBytes result;
    for (const Claim& claim : table.claims) {
        result.push_back(claim.planned_for_jobs());
    }
    return result;
}

bool moves_within_a_step(const ClaimTable& table, const PoolDecision& decision) {
    const Bytes planned_in_all = sum(decision.target);
    // Rounding may move one byte per node; 0 for plans so small that this would matter.
    constexpr std::uint64_t kNextToNothing = 256;
    const Bytes rounding{
        std::min<std::uint64_t>(table.nodes.size(), planned_in_all.count() / kNextToNothing)};
    const ClaimBytes last = last_targets(table);
    for (std::size_t i = 0; i < last.size(); ++i) {
        const Bytes planned = decision.target[i];
        const Bytes change = std::max(last[i], planned) - std::min(last[i], planned);
        const auto completes = [&](const ClaimUser& user) {
            return last[i] < user.minimum && user.minimum <= planned;
        };
        if (change > table.step + rounding ||
            std::ranges::any_of(table.claims[i].users, completes)) {
            return false;
        }
    }
    const Bytes last_in_all = sum(last);
    return last_in_all <= planned_in_all && planned_in_all <= last_in_all + rounding &&
           fits(table, decision, last, table.step);
}

bool replaces_last_plan(const ClaimTable& table, const PoolDecision& decision) {
    const ClaimBytes last = last_targets(table);
    ValueChange change;
    bool takes = false;
    for (std::size_t i = 0; i < last.size(); ++i) {
        takes |= decision.target[i] < last[i];
        change.add(table, table.claims[i], last[i], decision.target[i]);
    }
    return !takes || change.gains() || !fits(table, decision, last, Bytes::zero());
}

}  // namespace stoker::control
