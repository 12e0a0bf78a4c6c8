#include "operator/core/allocation/last_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "operator/core/allocation/claim_value.h"
#include "operator/core/allocation/rooms.h"

namespace stoker::control {

namespace {

constexpr double kRounding = 1e-14;  // relative error of value_at()

enum class Joined : std::uint8_t { kByNode, kByAccount, kByPool };

// For each node: whether `amounts` exceed its room by more than the targets do.
std::vector<bool> overfull_nodes(
    const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& amounts) {
    const std::vector<Bytes> used = node_uses(table, amounts);
    const std::vector<Bytes> planned = node_uses(table, decision.target);
    std::vector<bool> result;
    for (std::size_t i = 0; i < used.size(); ++i) {
        result.push_back(used[i] > std::max(table.nodes[i].capacity, planned[i]));
    }
    return result;
}

// For each account: whether `amounts` exceed its limit by more than the targets do, or lack owed
// bytes that the targets have. `slack`: missing bytes to tolerate for an account whose owed bytes
// depend on the last plan (kept_lent()).
std::vector<bool> wronged_accounts(
    const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& amounts, Bytes slack) {
    const std::vector<Bytes> used = account_uses(table, amounts);
    const std::vector<Bytes> planned = account_uses(table, decision.target);
    std::vector<Bytes> owed = decision.owed;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        owed[table.claims[i].account] += decision.lower[i];
    }
    std::vector<bool> result;
    for (std::size_t i = 0; i < used.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        // Weight 0 forbids borrowing.
        const Bytes most = quota.weight > 0 ? table.accounts[i].most() : quota.nominal;
        const Bytes may_lack = quota.reclaim == ReclaimPolicy::kAny ? Bytes::zero() : slack;
        result.push_back(
            used[i] > std::max(most, planned[i]) ||
            used[i] + may_lack < std::min(owed[i], planned[i]));
    }
    return result;
}

// For each claim: whether a limit that applies to it (its own, its node's, its account's or the
// pool's) is exceeded by `amounts`, and by more than by the targets.
std::vector<bool> misfits(
    const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& amounts, Bytes slack) {
    const std::vector<bool> nodes = overfull_nodes(table, decision, amounts);
    const std::vector<bool> accounts = wronged_accounts(table, decision, amounts, slack);
    const bool overdrawn = overdraft_of(table, amounts) > overdraft_of(table, decision.target);
    std::vector<bool> result;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const Claim& claim = table.claims[i];
        result.push_back(
            overdrawn || nodes[claim.node] || accounts[claim.account] || amounts[i] > claim.limit ||
            amounts[i] < std::min(decision.target[i], decision.lower[i]));
    }
    return result;
}

bool has_none(const std::vector<bool>& flags) {
    return std::ranges::find(flags, true) == flags.end();
}

// Whether one claim's bytes may limit the bytes of the account's other claims.
bool is_bounded(const Account& account) {
    return account.quota.nominal > Bytes::zero() || !account.most().is_unlimited();
}

// The parts of the change from `last` to `target`: sets of changed claims.
class Parts {
public:
    Parts(const ClaimTable& table, const ClaimBytes& last, const ClaimBytes& target, Joined joined)
        : part_(last.size()) {
        std::iota(part_.begin(), part_.end(), 0);
        std::map<std::size_t, std::size_t> nodes;
        std::map<std::string_view, std::size_t> datasets;
        std::map<std::size_t, std::size_t> accounts;
        for (std::size_t i = 0; i < last.size(); ++i) {
            if (last[i] == target[i]) {
                continue;
            }
            const Claim& claim = table.claims[i];
            join(nodes.emplace(joined == Joined::kByPool ? 0 : claim.node, i).first->second, i);
            join(datasets.emplace(claim.uid, i).first->second, i);
            if (joined == Joined::kByAccount && is_bounded(table.accounts[claim.account])) {
                join(accounts.emplace(claim.account, i).first->second, i);
            }
        }
    }

    // The claim that represents the part with claim `i` (union-find).
    [[nodiscard]] std::size_t of(std::size_t i) {
        while (part_[i] != i) {
            part_[i] = part_[part_[i]];
            i = part_[i];
        }
        return i;
    }

private:
    void join(std::size_t a, std::size_t b) { part_[of(b)] = of(a); }

    std::vector<std::size_t> part_;
};

// The effect of one part of a change.
struct PartChange {
    bool takes = false;
    bool fits = true;  // the last plan's bytes are feasible
    ValueChange value;

    [[nodiscard]] bool may_replace() const { return !takes || value.gains() || !fits; }
};

// One entry per claim; only entries of claims that represent a part (Parts::of()) have values.
std::vector<PartChange> changes_of(
    const ClaimTable& table, const ClaimBytes& last, const ClaimBytes& target, Parts& parts) {
    std::vector<PartChange> result(last.size());
    for (std::size_t i = 0; i < last.size(); ++i) {
        PartChange& change = result[parts.of(i)];
        change.takes |= target[i] < last[i];
        change.value.add(table, table.claims[i], last[i], target[i]);
    }
    return result;
}

Bytes sum(const ClaimBytes& amounts) {
    return std::accumulate(amounts.begin(), amounts.end(), Bytes::zero());
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
           has_none(misfits(table, decision, last, table.step));
}

ClaimBytes mend_last_plan(const ClaimTable& table, const PoolDecision& decision) {
    const ClaimBytes last = last_targets(table);
    const std::vector<bool> misfit = misfits(table, decision, last, Bytes::zero());
    ClaimBytes result;
    for (const Joined joined : {Joined::kByNode, Joined::kByAccount, Joined::kByPool}) {
        Parts parts{table, last, decision.target, joined};
        std::vector<PartChange> changes = changes_of(table, last, decision.target, parts);
        for (std::size_t i = 0; i < last.size(); ++i) {
            if (misfit[i] && last[i] != decision.target[i]) {
                changes[parts.of(i)].fits = false;
            }
        }
        result = decision.target;
        for (std::size_t i = 0; i < last.size(); ++i) {
            result[i] = changes[parts.of(i)].may_replace() ? decision.target[i] : last[i];
        }
        if (has_none(misfits(table, decision, result, Bytes::zero()))) {
            break;
        }
    }
    return result;
}

}  // namespace stoker::control
