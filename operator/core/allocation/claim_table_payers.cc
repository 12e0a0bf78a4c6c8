#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/plan_allocation_limits.h"

namespace stoker::control {

namespace {

// Bytes that somebody else is to pay for.
struct Handover {
    Payers* payers = nullptr;
    bool* done = nullptr;
    Payers next;
    Bytes bytes{};
};

// What the accounts are charged while handovers are tried.
class Charges {
public:
    explicit Charges(const ClaimTable& table)
        : accounts_(&table.accounts),
          used_(account_uses(table, reserves_of(table), ChargedTo::kPayers)) {}

    void add(const Handover& handover) {
        move(*handover.payers, handover.bytes, false);
        move(handover.next, handover.bytes, true);
    }

    // Whether nobody who pays more than `before` pays more than it may, and nobody borrows more
    // that is not lent.
    [[nodiscard]] bool fit_after(const Charges& before) const {
        Bytes common{};
        for (std::size_t i = 0; i < used_.size(); ++i) {
            if (used_[i] > std::max(before.used_[i], (*accounts_)[i].most())) {
                return false;
            }
            common += (*accounts_)[i].quota.nominal;
        }
        return taken() <= std::max(before.taken(), common);
    }

private:
    void move(const Payers& payers, Bytes bytes, bool more) {
        const Bytes part = payers.part_of(bytes);
        for (const std::uint32_t account : payers.accounts) {
            used_[account] = more ? used_[account] + part : used_[account] - part;
        }
    }

    // Of all nominal quotas together.
    [[nodiscard]] Bytes taken() const {
        Bytes result{};
        for (std::size_t i = 0; i < used_.size(); ++i) {
            result += std::max(used_[i], (*accounts_)[i].guaranteed());
        }
        return result;
    }

    const std::vector<Account>* accounts_;
    std::vector<Bytes> used_;
};

std::set<std::string> readers_of(const ClaimTable& table, const Claim& claim) {
    std::set<std::string> result;
    for (const ClaimUser& user : claim.users) {
        result.insert(table.jobs[user.job].demand->job.ns);
    }
    return result;
}

void find_accounts(const ClaimTable& table, Payers& payers) {
    payers.accounts.clear();
    for (std::uint32_t i = 0; i < table.accounts.size(); ++i) {
        if (std::ranges::binary_search(payers.names, table.accounts[i].quota.ns)) {
            payers.accounts.push_back(i);
        }
    }
}

// Those that are to come. Where nobody is known to have paid, the readers are charged from here on;
// whether they can is seen later.
std::vector<Handover> find_handovers(ClaimTable& table) {
    std::vector<Handover> result;
    for (Claim& claim : table.claims) {
        const std::set<std::string> readers = readers_of(table, claim);
        Payers next{{readers.begin(), readers.end()}, claim.accounts};
        claim.payers_known = !claim.payers.names.empty();
        claim.handed_over = !claim.payers_known || claim.payers.names == next.names;
        if (claim.handed_over) {
            claim.payers = std::move(next);
        } else {
            find_accounts(table, claim.payers);
            result.push_back({&claim.payers, &claim.handed_over, std::move(next), claim.reserve()});
        }
    }
    for (IdleHolding& idle : table.idle) {
        Payers next{{idle.ns}, {}};
        find_accounts(table, next);
        find_accounts(table, idle.payers);
        idle.handed_over = idle.payers.names.empty() || idle.payers.names == next.names;
        if (idle.handed_over) {
            idle.payers = std::move(next);
        } else {
            result.push_back({&idle.payers, &idle.handed_over, std::move(next), idle.resident});
        }
    }
    return result;
}

// All of them, or one after the other those that fit: two may only be possible together.
void hand_over(const ClaimTable& table, std::vector<Handover>& handovers) {
    const auto carry_out = [](Handover& handover) {
        *handover.payers = std::move(handover.next);
        *handover.done = true;
    };
    const Charges before{table};
    Charges after = before;
    for (const Handover& handover : handovers) {
        after.add(handover);
    }
    if (after.fit_after(before)) {
        std::ranges::for_each(handovers, carry_out);
        return;
    }
    Charges now = before;
    for (Handover& handover : handovers) {
        Charges next = now;
        next.add(handover);
        if (next.fit_after(now)) {
            now = next;
            carry_out(handover);
        }
    }
}

// Where nobody knows who paid before, the readers do from now on if they can.
void take_on_the_unknown(ClaimTable& table) {
    const Ledger ledger{table, reserves_of(table), Ledger::Borrowing::kYes, ChargedTo::kPayers};
    const bool is_patient = std::ranges::none_of(
        table.jobs, [](const PlannedJob& job) { return job.held_back != nullptr; });
    bool all_known = true;
    for (Claim& claim : table.claims) {
        const bool can_pay = claim.reserve() == Bytes::zero() || !ledger.is_overdrawn(claim);
        claim.payers_known = claim.payers_known || (table.settled && (can_pay || !is_patient));
        all_known &= claim.payers_known;
    }
    table.settled &= all_known;
}

}  // namespace

void Payers::add(const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
}

Bytes Payers::part_of(Bytes bytes) const {
    const std::uint64_t parts = std::max<std::uint64_t>(names.size(), 1);
    return Bytes{bytes.count() / parts + (bytes.count() % parts == 0 ? 0 : 1)};
}

void settle_payers(ClaimTable& table) {
    std::vector<Handover> handovers = find_handovers(table);
    if (!handovers.empty()) {
        hand_over(table, handovers);
    }
    take_on_the_unknown(table);
}

}  // namespace stoker::control
