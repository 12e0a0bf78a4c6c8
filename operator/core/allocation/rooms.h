#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"

// What nodes, accounts, and all accounts together have room for. Pure; private to
// operator/core/allocation.
namespace stoker::control {

// Room beyond some amounts. Kueue's rule for a cohort, for bytes: the sum of
// max(used, nominal - lendingLimit) never grows beyond cohort_bytes().
struct Rooms {
    std::vector<Bytes> nodes;
    std::vector<Bytes> accounts;
    std::vector<Bytes> own;  // of the account's room, what does not need the common room
    Bytes common{};

    [[nodiscard]] Bytes of_account(std::size_t account) const {
        return std::min(accounts[account], own[account] + common);
    }

    // The most that something on the node, charged to the account, can grow by, at most `wanted`.
    [[nodiscard]] Bytes growth(std::size_t node, std::size_t account, Bytes wanted) const {
        return std::min({wanted, nodes[node], of_account(account)});
    }

    // Bytes that growth() allows are used.
    void take(std::size_t node, std::size_t account, Bytes bytes);
};

// The most bytes of each claim that may be on its node until it shrinks.
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

// Beyond `given`, within the nominal quotas, without what is `kept` (kept_lent(), or nothing).
Rooms nominal_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// With all that may be borrowed. `kept`: accounts that may not use it again lend it for good.
Rooms borrowing_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// What all accounts together have more than they may if the claims have so much: quotas get
// smaller.
Bytes overdraft_of(const ClaimTable& table, const ClaimBytes& given);

}  // namespace stoker::control
