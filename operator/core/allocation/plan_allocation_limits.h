#pragma once

#include <cstdint>
#include <vector>

#include "operator/core/allocation/claim_table.h"

namespace stoker::control {

using ClaimBytes = std::vector<Bytes>;  // one for each claim of the table

// What may be there of each claim at any moment until it shrinks.
ClaimBytes reserves_of(const ClaimTable& table);

// What each account is charged if the claims have so much: those, and its idle bytes.
std::vector<Bytes> account_uses(const ClaimTable& table, const ClaimBytes& given);

// What all accounts together may use: the pool's nodes, or the nominal quotas where those are more.
// What no nominal quota names is lent to everybody.
Bytes cohort_bytes(const ClaimTable& table);

// For each account, bytes that others have borrowed of it if the claims have so much: first goes
// what no nominal quota names, then even parts of what each lends and does not use.
std::vector<Bytes> lent_of(const ClaimTable& table, const ClaimBytes& amounts);

// For each account, bytes of its nominal quota that are lent now and stay where they are: a
// reclaim policy other than Any keeps them from the account's own jobs, the guaranteed minimums
// aside. Whoever has use for them may then borrow them; with LowerMarginalBenefit the owner too.
std::vector<Bytes> kept_lent(const ClaimTable& table);

// Room beyond some amounts: on nodes, of accounts, and for all accounts together.
struct Rooms {
    std::vector<std::uint64_t> nodes;
    std::vector<std::uint64_t> accounts;
    std::vector<std::uint64_t> own;  // of the account's room, what does not need the common room
    std::uint64_t common = 0;
};

// Within the nominal quotas, without what is `kept` (kept_lent(), or nothing).
Rooms nominal_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// With all that may be borrowed. `kept`: accounts that may not use it again lend it for good.
Rooms borrowing_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// The accounts and nodes while bytes are being moved. Kueue's rule for a cohort, for bytes: the sum
// of max(used, nominal - lendingLimit) never grows beyond cohort_bytes().
class Ledger {
public:
    enum class Borrowing : std::uint8_t { kNo, kYes };

    // `given`: what counts as taken from the start.
    Ledger(const ClaimTable& table, const ClaimBytes& given, Borrowing borrowing);

    // The most that the claim can grow by, at most `wanted`.
    [[nodiscard]] Bytes growth(const Claim& claim, Bytes wanted) const;
    void add(const Claim& claim, Bytes bytes);

    [[nodiscard]] Bytes node_room(std::size_t node) const { return node_room_[node]; }

    // Whether the claim's account, or all accounts together, have more than they may: quotas get
    // smaller.
    [[nodiscard]] bool is_overdrawn(const Claim& claim) const;

    // What the account can still grow by.
    [[nodiscard]] Bytes account_room(std::size_t account) const;

    // Whether it has all that its own limits allow, whatever others leave.
    [[nodiscard]] bool is_at_limit(std::size_t account) const;

    [[nodiscard]] Bytes used(std::size_t account) const { return used_[account]; }

    // Whether it has more than its nominal quota.
    [[nodiscard]] bool borrows(std::size_t account) const;

    // What all accounts together have more than they may.
    [[nodiscard]] Bytes overdraft() const { return overdraft_; }

private:
    // The part of its nominal quota that the account does not lend.
    [[nodiscard]] Bytes guaranteed(std::size_t account) const;
    [[nodiscard]] Bytes most(std::size_t account) const;
    // The part of the account's room that is not common room.
    [[nodiscard]] Bytes own_room(std::size_t account) const;

    const ClaimTable& table_;
    Borrowing borrowing_;
    std::vector<Bytes> node_room_;
    std::vector<Bytes> used_;
    Bytes common_{};
    Bytes overdraft_{};
};

}  // namespace stoker::control
