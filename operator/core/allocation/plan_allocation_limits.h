#pragma once

#include <cstdint>
#include <vector>

#include "operator/core/allocation/claim_table.h"

namespace stoker::control {

using ClaimBytes = std::vector<Bytes>;  // one for each claim of the table

// What a claim of so many bytes costs each of its accounts.
Bytes charge(const Claim& claim, Bytes bytes);

// What may be there of each claim at any moment until it shrinks.
ClaimBytes reserves_of(const ClaimTable& table);

// Whom bytes are charged to: those that read them, as targets are, or who pays for what is there
// (settle_payers()).
enum class ChargedTo : std::uint8_t { kReaders, kPayers };

// What each account is charged if the claims have so much.
std::vector<Bytes> account_uses(
    const ClaimTable& table, const ClaimBytes& given, ChargedTo charged);

// Of each account, what others have borrowed of it if the claims have so much; even parts of what
// each lends and does not use.
std::vector<Bytes> lent_of(
    const ClaimTable& table, const ClaimBytes& amounts, ChargedTo charged = ChargedTo::kReaders);

// Of each account, bytes of its nominal quota that are lent now and stay where they are: a
// reclaim policy other than Any keeps them from the account's own jobs, the guaranteed minimums
// aside. Whoever has use for them may then borrow them; with LowerMarginalBenefit the owner too.
std::vector<Bytes> kept_lent(const ClaimTable& table);

// Room beyond some amounts: on nodes, of accounts, and for all accounts together.
struct Rooms {
    std::vector<std::uint64_t> nodes;
    std::vector<std::uint64_t> accounts;
    std::uint64_t common = 0;
};

// Within the nominal quotas, without what is `kept` (kept_lent(), or nothing).
Rooms nominal_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// With what the namespaces lend that do not need their nominal quota. `within`: what everybody has
// within theirs; an account that has room left in its own lends and does not borrow.
Rooms borrowing_rooms(const ClaimTable& table, const ClaimBytes& within);

// The accounts and nodes while bytes are being moved. Kueue's rule for a cohort, for bytes: the sum
// of max(used, nominal - lendingLimit) never grows beyond the sum of nominal quotas.
class Ledger {
public:
    enum class Borrowing : std::uint8_t { kNo, kYes };

    // `given`: what counts as taken from the start.
    Ledger(
        const ClaimTable& table,
        const ClaimBytes& given,
        Borrowing borrowing,
        ChargedTo charged = ChargedTo::kReaders);

    // The most that the claim can grow by, at most `wanted`, if its readers are charged.
    [[nodiscard]] Bytes growth(const Claim& claim, Bytes wanted) const;
    void add(const Claim& claim, Bytes bytes);

    [[nodiscard]] Bytes node_room(std::size_t node) const { return node_room_[node]; }

    // Whether an account of the claim, or all accounts together, have more than they may: who
    // shares a dataset with others pays more as soon as one of them leaves, and quotas get smaller.
    [[nodiscard]] bool is_overdrawn(const Claim& claim) const;

    // What the account can still grow by.
    [[nodiscard]] Bytes account_room(std::size_t account) const;

    [[nodiscard]] Bytes used(std::size_t account) const { return used_[account]; }

private:
    // Of its nominal quota, what the account keeps for itself.
    [[nodiscard]] Bytes guaranteed(std::size_t account) const;
    [[nodiscard]] Bytes most(std::size_t account) const;
    // Of the account's room, what does not need the common room.
    [[nodiscard]] Bytes own_room(std::size_t account) const;

    const ClaimTable& table_;
    Borrowing borrowing_;
    std::vector<Bytes> node_room_;
    std::vector<Bytes> used_;
    Bytes common_{};
    bool is_lent_out_ = false;  // more is taken than there is
};

// Raises `given` until the slowest job is as fast as can be, then the next slowest, for a few
// rounds; returns the new amounts. Speed is the share of f* that a job can read on its worst node.
ClaimBytes raise_the_slowest(const ClaimTable& table, const Rooms& rooms, const ClaimBytes& given);

// Speed of the user with so many bytes of the claim cached, 0..1.
double speed_of(const ClaimTable& table, const ClaimUser& user, Bytes cached);

}  // namespace stoker::control
