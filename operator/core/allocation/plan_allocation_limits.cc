#include "operator/core/allocation/plan_allocation_limits.h"

#include <algorithm>

#include "operator/core/allocation/level_fill.h"

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

std::vector<std::uint64_t> counts(const std::vector<Bytes>& bytes) {
    std::vector<std::uint64_t> result;
    for (const Bytes value : bytes) {
        result.push_back(value.count());
    }
    return result;
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

}  // namespace

std::vector<Bytes> account_uses(const ClaimTable& table, const ClaimBytes& given) {
    std::vector<Bytes> used;
    for (const Account& account : table.accounts) {
        used.push_back(account.idle);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
        used[table.claims[i].account] += given[i];
    }
    return used;
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
    std::vector<Bytes> lendable;
    Bytes borrowed{};
    for (std::size_t i = 0; i < used.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        borrowed += used[i] - quota.nominal;
        lendable.push_back(std::min(quota.lending, quota.nominal - used[i]));
    }
    const Bytes unnamed = cohort_bytes(table) - nominal_bytes(table);
    return level_fill(lendable, borrowed - unnamed);
}

std::vector<Bytes> kept_lent(const ClaimTable& table) {
    ClaimBytes held;
    for (const Claim& claim : table.claims) {
        held.push_back(claim.held);
    }
    std::vector<Bytes> result = lent_of(table, held);
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
    rooms.nodes = counts(node_rooms(table, given));
    const std::vector<Bytes> used = account_uses(table, given);
    for (std::size_t i = 0; i < used.size(); ++i) {
        rooms.accounts.push_back((table.accounts[i].quota.nominal - used[i] - at(kept, i)).count());
    }
    rooms.own = rooms.accounts;
    return rooms;
}

Rooms borrowing_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept) {
    Rooms rooms;
    rooms.nodes = counts(node_rooms(table, given));
    const std::vector<Bytes> used = account_uses(table, given);
    Bytes taken{};
    for (std::size_t i = 0; i < used.size(); ++i) {
        const Account& account = table.accounts[i];
        const bool competes = account.quota.reclaim == ReclaimPolicy::kLowerMarginalBenefit;
        const bool may_borrow = competes || at(kept, i) == Bytes::zero();
        const Bytes most = may_borrow ? account.most() : account.quota.nominal - at(kept, i);
        rooms.accounts.push_back((most - used[i]).count());
        rooms.own.push_back((account.guaranteed() - used[i]).count());
        taken += std::max(used[i], account.guaranteed());
    }
    rooms.common = (cohort_bytes(table) - taken).count();
    return rooms;
}

Ledger::Ledger(const ClaimTable& table, const ClaimBytes& given, Borrowing borrowing)
    : table_(table),
      borrowing_(borrowing),
      node_room_(node_rooms(table, given)),
      used_(account_uses(table, given)) {
    const Bytes all = cohort_bytes(table);
    Bytes taken{};
    for (std::size_t i = 0; i < used_.size(); ++i) {
        taken += std::max(used_[i], guaranteed(i));
    }
    overdraft_ = taken - all;
    common_ = all - taken;
}

bool Ledger::is_overdrawn(const Claim& claim) const {
    return overdraft_ > Bytes::zero() || used_[claim.account] > most(claim.account);
}

Bytes Ledger::guaranteed(std::size_t account) const {
    const Account& it = table_.accounts[account];
    return borrowing_ == Borrowing::kNo ? it.quota.nominal : it.guaranteed();
}

Bytes Ledger::most(std::size_t account) const {
    const Account& it = table_.accounts[account];
    return borrowing_ == Borrowing::kNo ? it.quota.nominal : it.most();
}

Bytes Ledger::own_room(std::size_t account) const {
    return guaranteed(account) - used_[account];
}

Bytes Ledger::account_room(std::size_t account) const {
    return std::min(most(account) - used_[account], own_room(account) + common_);
}

bool Ledger::borrows(std::size_t account) const {
    return used_[account] > table_.accounts[account].quota.nominal;
}

bool Ledger::is_at_limit(std::size_t account) const {
    return used_[account] >= most(account);
}

Bytes Ledger::growth(const Claim& claim, Bytes wanted) const {
    return std::min({wanted, node_room_[claim.node], account_room(claim.account)});
}

void Ledger::add(const Claim& claim, Bytes bytes) {
    node_room_[claim.node] -= bytes;
    common_ -= bytes - own_room(claim.account);
    used_[claim.account] += bytes;
}

}  // namespace stoker::control
