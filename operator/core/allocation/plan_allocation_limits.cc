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

// Rounding leaves an account that is charged parts of claims a few bytes short of its quota.
std::vector<std::uint64_t> rounding(const ClaimTable& table) {
    std::vector<std::uint64_t> result(table.accounts.size(), 0);
    for (const Claim& claim : table.claims) {
        for (const std::uint32_t account : claim.accounts) {
            result[account] += claim.parts - 1;
        }
    }
    return result;
}

Bytes at(const std::vector<Bytes>& bytes, std::size_t index) {
    return index < bytes.size() ? bytes[index] : Bytes::zero();
}

}  // namespace

Bytes charge(const Claim& claim, Bytes bytes) {
    const std::uint64_t parts = claim.parts;
    return Bytes{bytes.count() / parts + (bytes.count() % parts == 0 ? 0 : 1)};
}

std::vector<Bytes> account_uses(
    const ClaimTable& table, const ClaimBytes& given, ChargedTo charged) {
    std::vector<Bytes> used(table.accounts.size());
    const bool readers = charged == ChargedTo::kReaders;
    for (std::size_t i = 0; readers && i < used.size(); ++i) {
        used[i] = table.accounts[i].idle;
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes part = readers ? charge(claim, given[i]) : claim.payers.part_of(given[i]);
        for (const std::uint32_t account : readers ? claim.accounts : claim.payers.accounts) {
            used[account] += part;
        }
    }
    for (std::size_t i = 0; !readers && i < table.idle.size(); ++i) {
        const IdleHolding& idle = table.idle[i];
        for (const std::uint32_t account : idle.payers.accounts) {
            used[account] += idle.payers.part_of(idle.resident);
        }
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

std::vector<Bytes> lent_of(const ClaimTable& table, const ClaimBytes& amounts, ChargedTo charged) {
    const std::vector<Bytes> used = account_uses(table, amounts, charged);
    std::vector<Bytes> lendable;
    Bytes borrowed{};
    for (std::size_t i = 0; i < used.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        borrowed += used[i] - quota.nominal;
        lendable.push_back(std::min(quota.lending, quota.nominal - used[i]));
    }
    return level_fill(lendable, borrowed);
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
    const std::vector<Bytes> used = account_uses(table, given, ChargedTo::kReaders);
    for (std::size_t i = 0; i < used.size(); ++i) {
        rooms.accounts.push_back((table.accounts[i].quota.nominal - used[i] - at(kept, i)).count());
    }
    rooms.common = Bytes::unlimited().count();
    return rooms;
}

Rooms borrowing_rooms(const ClaimTable& table, const ClaimBytes& within) {
    Rooms rooms;
    rooms.nodes = counts(node_rooms(table, within));
    const std::vector<Bytes> used = account_uses(table, within, ChargedTo::kReaders);
    const std::vector<std::uint64_t> rounded = rounding(table);
    Bytes lent{};
    Bytes borrowed{};
    for (std::size_t i = 0; i < used.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        const Bytes left = quota.nominal - used[i];
        if (left.count() <= rounded[i]) {
            rooms.accounts.push_back((quota.nominal + quota.borrowing - used[i] - left).count());
            borrowed += used[i] - quota.nominal;
        } else {
            const bool competes = quota.reclaim == ReclaimPolicy::kLowerMarginalBenefit;
            const Bytes lends = std::min(quota.lending, left);
            // All that it lends, not only what is lent now: or a dataset that it shares with a
            // borrower could grow by bytes that are lent, and not by the same ones before.
            rooms.accounts.push_back(competes ? lends.count() : 0);
            lent += lends;
        }
    }
    rooms.common = (lent - borrowed).count();
    return rooms;
}

Ledger::Ledger(
    const ClaimTable& table, const ClaimBytes& given, Borrowing borrowing, ChargedTo charged)
    : table_(table),
      borrowing_(borrowing),
      node_room_(node_rooms(table, given)),
      used_(account_uses(table, given, charged)) {
    Bytes taken{};
    for (std::size_t i = 0; i < used_.size(); ++i) {
        common_ += table.accounts[i].quota.nominal;
        taken += std::max(used_[i], guaranteed(i));
    }
    is_lent_out_ = taken > common_;
    common_ -= taken;
}

bool Ledger::is_overdrawn(const Claim& claim) const {
    return std::ranges::any_of(claim.accounts, [&](std::uint32_t account) {
        return is_lent_out_ || used_[account] > most(account);
    });
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

Bytes Ledger::growth(const Claim& claim, Bytes wanted) const {
    Bytes limit = std::min(wanted, node_room_[claim.node]);
    for (const std::uint32_t account : claim.accounts) {
        const Bytes common{common_.count() / claim.accounts.size()};
        const Bytes room = std::min(most(account) - used_[account], own_room(account) + common);
        limit = std::min(limit, room * claim.parts);
    }
    return limit;
}

void Ledger::add(const Claim& claim, Bytes bytes) {
    node_room_[claim.node] -= bytes;
    for (const std::uint32_t account : claim.accounts) {
        const Bytes more = charge(claim, bytes);
        common_ -= more - own_room(account);
        used_[account] += more;
    }
}

}  // namespace stoker::control
