#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"

// Free room on nodes, in accounts, and in all accounts together, and the part of it that nominal quotas
// guarantee. Pure; private to operator/core/allocation.
namespace stoker::control {

// Room beyond given amounts. Kueue's cohort rule, for bytes: the sum of max(used, nominal -
// lendingLimit) stays within cohort_bytes().
struct Rooms {
    std::vector<Bytes> nodes;
    std::vector<Bytes> accounts;
    std::vector<Bytes> own;  // part of each account's room outside the common room
    Bytes common{};

    [[nodiscard]] Bytes of_account(std::size_t account) const {
        return std::min(accounts[account], own[account] + common);
    }

    // Largest growth of a claim on this node and account, at most `wanted`.
    [[nodiscard]] Bytes growth(std::size_t node, std::size_t account, Bytes wanted) const {
        return std::min({wanted, nodes[node], of_account(account)});
    }

    // Uses up bytes that growth() allows.
    void take(std::size_t node, std::size_t account, Bytes bytes);
};

// Bytes of each claim that may be on its node until it shrinks.
ClaimBytes reserves_of(const ClaimTable& table);

// Charge of each account if the claims have `given`: those bytes and its idle bytes.
std::vector<Bytes> account_uses(const ClaimTable& table, const ClaimBytes& given);

// Bytes on each node if the claims have `given`: those bytes and its idle bytes.
std::vector<Bytes> node_uses(const ClaimTable& table, const ClaimBytes& given);

// Bytes that all accounts may use together: the pool's nodes, or the nominal quotas if those are
// larger. Every account may borrow bytes outside all nominal quotas.
Bytes cohort_bytes(const ClaimTable& table);

// For each account, bytes lent to others if the claims have `amounts`: bytes outside all nominal
// quotas are lent first, then an even share of each account's unused lendable bytes.
std::vector<Bytes> lent_of(const ClaimTable& table, const ClaimBytes& amounts);

// As lent_of(), to jobs only. Bytes of a dataset that a fill wants, too, count as borrowed only if they
// speed up a job, and as used by their owner if a job wants them.
std::vector<Bytes> lent_to_jobs(const ClaimTable& table, const ClaimBytes& amounts);

// For each account, bytes of its nominal quota that the last plan lends to jobs and that stay lent, because the
// quota's reclaim.policy is not Any: its own jobs get none of them but guaranteed minimums. Other
// accounts may borrow them; with LowerMarginalBenefit its own jobs may, too.
std::vector<Bytes> kept_lent(const ClaimTable& table);

// Room beyond `given` within the nominal quotas, without `kept` bytes (kept_lent(), or none).
Rooms nominal_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// Room with all bytes that may be borrowed. `kept`: kept_lent().
Rooms borrowing_rooms(
    const ClaimTable& table, const ClaimBytes& given, const std::vector<Bytes>& kept = {});

// Bytes by which all accounts together exceed their limit if the claims have `given`; quotas may
// have shrunk.
Bytes overdraft_of(const ClaimTable& table, const ClaimBytes& given);

// Bytes that the nominal quotas of a pool guarantee together: each account gets the bytes that it
// can use (useful_end()), up to its nominal quota, on the nodes where its datasets are read. If
// nodes are too small for all, accounts that compete for a node rise together, in proportion to
// their nominal quotas, until each has all it can use or its nodes are full (Megiddo 1974; steps of
// 1/64). Minimums come first. Independent of earlier grants. Pure; private to decide_pool().
class Guarantee {
public:
    // `lower`: the minimums. `kept`: result of kept_lent(). The table must outlive this object.
    Guarantee(const ClaimTable& table, const ClaimBytes& lower, const std::vector<Bytes>& kept);

    // Owed bytes of each account, beyond the minimums.
    [[nodiscard]] const std::vector<Bytes>& owed() const { return owed_; }

    // Can every account still get its owed() bytes if every claim keeps at least `amounts`? Empty:
    // yes. Otherwise one flag per node: true where the node is full.
    [[nodiscard]] std::vector<bool> nodes_in_the_way(const ClaimBytes& amounts) const;

private:
    // Bytes beyond the minimums that an account's claims on a node can use.
    struct Want {
        std::size_t account = 0;
        std::size_t node = 0;
        Bytes bytes{};
    };

    void rise_together(const std::vector<Bytes>& most, const std::vector<Bytes>& used);

    const ClaimTable& table_;
    ClaimBytes lower_;
    std::vector<Bytes> node_room_;
    std::vector<Want> wants_;
    std::vector<std::size_t> want_of_;  // by claim
    std::vector<Bytes> owed_;
};

}  // namespace stoker::control
