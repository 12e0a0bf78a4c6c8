#include "operator/core/allocation/rooms.h"

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

}  // namespace

void Rooms::take(std::size_t node, std::size_t account, Bytes bytes) {
    nodes[node] -= bytes;
    accounts[account] -= bytes;
    common -= bytes - own[account];
    own[account] -= bytes;
}

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

}  // namespace stoker::control
