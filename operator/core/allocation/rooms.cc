#include "operator/core/allocation/rooms.h"

#include <algorithm>
#include <map>
#include <utility>

#include "operator/core/allocation/claim_value.h"
#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/max_flow.h"

namespace stoker::control {

namespace {

std::vector<Bytes> node_rooms(const ClaimTable& table, const ClaimBytes& given) {
    std::vector<Bytes> rooms;
    for (const PlannedNode& node : table.nodes) {
        rooms.push_back(node.capacity - node.idle);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
        rooms[table.claims[i].node] -= given[i];
    }
    return rooms;
}

// For each of `holders` (nodes or accounts): its idle bytes, and those given to the claims whose
// `holder` it is.
template <class Holder, class Index>
std::vector<Bytes> uses(
    const std::vector<Holder>& holders,
    const std::vector<Claim>& claims,
    Index Claim::*holder,
    const ClaimBytes& given) {
    std::vector<Bytes> used;
    for (const Holder& each : holders) {
        used.push_back(each.idle);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
        used[claims[i].*holder] += given[i];
    }
    return used;
}

Bytes at(const std::vector<Bytes>& bytes, std::size_t index) {
    return index < bytes.size() ? bytes[index] : Bytes::zero();
}

Bytes nominal_bytes(const ClaimTable& table) {
    Bytes result{};
    for (const Account& account : table.accounts) {
        result += account.quota.nominal;
    }
    return result;
}

// Sum over the accounts of max(used, bytes that they do not lend), if the claims have `given`.
Bytes taken_of(const ClaimTable& table, const ClaimBytes& given) {
    const std::vector<Bytes> used = account_uses(table, given);
    Bytes result{};
    for (std::size_t i = 0; i < used.size(); ++i) {
        result += std::max(used[i], table.accounts[i].guaranteed());
    }
    return result;
}

// `borrowers`, `owners`: charge of each account, as a borrower and as an owner.
std::vector<Bytes> lent_by_uses(
    const ClaimTable& table,
    const std::vector<Bytes>& borrowers,
    const std::vector<Bytes>& owners) {
    std::vector<Bytes> lendable;
    Bytes borrowed{};
    for (std::size_t i = 0; i < owners.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        borrowed += borrowers[i] - quota.nominal;
        lendable.push_back(std::min(quota.lending, quota.nominal - owners[i]));
    }
    const Bytes unnamed = cohort_bytes(table) - nominal_bytes(table);
    return level_fill(lendable, borrowed - unnamed);
}

constexpr std::uint64_t kLevels = 64;

Bytes part_of(Bytes bytes, std::uint64_t level) {
    return Bytes{bytes.count() / kLevels * level + bytes.count() % kLevels * level / kLevels};
}

}  // namespace

void Rooms::take(std::size_t node, std::size_t account, Bytes bytes) {
    nodes[node] -= bytes;
    accounts[account] -= bytes;
    common -= bytes - own[account];
    own[account] -= bytes;
}

std::vector<Bytes> account_uses(const ClaimTable& table, const ClaimBytes& given) {
    return uses(table.accounts, table.claims, &Claim::account, given);
}

std::vector<Bytes> node_uses(const ClaimTable& table, const ClaimBytes& given) {
    return uses(table.nodes, table.claims, &Claim::node, given);
}

ClaimBytes reserves_of(const ClaimTable& table) {
    ClaimBytes result;
    for (const Claim& claim : table.claims) {
        result.push_back(claim.reserve());
    }
    return result;
}

Bytes cohort_bytes(const ClaimTable& table) {
    Bytes on_nodes{};
    for (const PlannedNode& node : table.nodes) {
        on_nodes += node.capacity;
    }
    return std::max(on_nodes, nominal_bytes(table));
}

std::vector<Bytes> lent_of(const ClaimTable& table, const ClaimBytes& amounts) {
    const std::vector<Bytes> used = account_uses(table, amounts);
    return lent_by_uses(table, used, used);
}

std::vector<Bytes> lent_to_jobs(const ClaimTable& table, const ClaimBytes& amounts) {
    ClaimBytes useful = amounts;
    ClaimBytes wanted = amounts;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const Claim& claim = table.claims[i];
        if (claim.has_fill) {
            useful[i] = std::min(amounts[i], useful_end(table, claim));
            wanted[i] = std::min(amounts[i], claim.limit);
        }
    }
    return lent_by_uses(table, account_uses(table, useful), account_uses(table, wanted));
}

std::vector<Bytes> kept_lent(const ClaimTable& table) {
    ClaimBytes planned;
    for (const Claim& claim : table.claims) {
        planned.push_back(claim.planned);
    }
    std::vector<Bytes> result = lent_to_jobs(table, planned);
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (table.accounts[i].quota.reclaim == ReclaimPolicy::kAny) {
            result[i] = Bytes::zero();
        }
    }
    return result;
}

Rooms nominal_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept) {
    Rooms rooms;
    rooms.nodes = node_rooms(table, given);
    const std::vector<Bytes> used = account_uses(table, given);
    for (std::size_t i = 0; i < used.size(); ++i) {
        rooms.accounts.push_back(table.accounts[i].quota.nominal - used[i] - at(kept, i));
    }
    rooms.own = rooms.accounts;
    return rooms;
}

Rooms borrowing_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept) {
    Rooms rooms;
    rooms.nodes = node_rooms(table, given);
    const std::vector<Bytes> used = account_uses(table, given);
    for (std::size_t i = 0; i < used.size(); ++i) {
        const Account& account = table.accounts[i];
        const bool competes = account.quota.reclaim == ReclaimPolicy::kLowerMarginalBenefit;
        const bool may_borrow = competes || at(kept, i) == Bytes::zero();
        const Bytes most = may_borrow ? account.most() : account.quota.nominal - at(kept, i);
        rooms.accounts.push_back(most - used[i]);
        rooms.own.push_back(account.guaranteed() - used[i]);
    }
    rooms.common = cohort_bytes(table) - taken_of(table, given);
    return rooms;
}

Bytes overdraft_of(const ClaimTable& table, const ClaimBytes& given) {
    return taken_of(table, given) - cohort_bytes(table);
}

Guarantee::Guarantee(
    const ClaimTable& table, const ClaimBytes& lower, const std::vector<Bytes>& kept)
    : table_(table),
      lower_(lower) {
    const Rooms rooms = nominal_rooms(table, lower, kept);
    node_room_ = rooms.nodes;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> numbers;  // by account, node
    std::vector<Bytes> most(table.accounts.size());
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const auto [number, is_new] =
            numbers.emplace(std::pair{claim.account, claim.node}, wants_.size());
        if (is_new) {
            wants_.push_back({claim.account, claim.node});
        }
        want_of_.push_back(number->second);
        const Bytes bytes = useful_end(table, claim) - lower[i];
        wants_[number->second].bytes += bytes;
        most[claim.account] += bytes;
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        most[i] = std::min(most[i], rooms.accounts[i]);
    }
    rise_together(most, account_uses(table, lower));
}

void Guarantee::rise_together(const std::vector<Bytes>& most, const std::vector<Bytes>& used) {
    AccountFlow flow{std::vector<Bytes>(most.size()), node_room_};
    for (const Want& want : wants_) {
        flow.add(want.account, want.node, want.bytes);
    }
    owed_.resize(most.size());
    for (std::uint64_t level = 1; level <= kLevels; ++level) {
        for (std::size_t i = 0; i < most.size(); ++i) {
            const Bytes goal = part_of(table_.accounts[i].quota.nominal, level) - used[i];
            const Bytes next = std::max(owed_[i], std::min(goal, most[i]));
            flow.widen(i, next - owed_[i]);
            owed_[i] = next;
        }
        flow.run();
    }
    for (std::size_t i = 0; i < most.size(); ++i) {
        owed_[i] -= flow.stuck(i);
    }
}

std::vector<bool> Guarantee::nodes_in_the_way(const ClaimBytes& amounts) const {
    std::vector<Bytes> node_room = node_room_;
    std::vector<Want> wants = wants_;
    std::vector<Bytes> owed = owed_;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const Bytes more = amounts[i] - lower_[i];
        node_room[table_.claims[i].node] -= more;
        wants[want_of_[i]].bytes -= more;
        owed[table_.claims[i].account] -= more;
    }
    AccountFlow flow{owed, node_room};
    for (const Want& want : wants) {
        flow.add(want.account, want.node, want.bytes);
    }
    flow.run();
    std::vector<bool> result;
    for (std::size_t i = 0; i < node_room.size() && !flow.is_whole(); ++i) {
        result.push_back(flow.is_full(i));
    }
    return result;
}

}  // namespace stoker::control
