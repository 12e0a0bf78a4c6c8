#include "operator/core/allocation/decide_pool.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "operator/core/allocation/claim_value.h"
#include "operator/core/allocation/grant_fills.h"
#include "operator/core/allocation/last_plan.h"
#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/max_min.h"
#include "operator/core/allocation/share_bandwidth.h"
#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

namespace {

constexpr std::size_t kChordCount = 16;
constexpr std::size_t kPieceCountMax = 400'000;  // with more, curves are cut more coarsely

// Raises each claim of job `job_index` to the bytes in member `part` of its ClaimUser (`minimum` or
// `fixed`), as far as nodes and the charged namespaces' nominal quotas allow; divides evenly where
// a quota is too small. `guest`: true for claims on other namespaces' datasets, false for its own.
void reserve(
    const ClaimTable& table,
    std::size_t job_index,
    bool guest,
    Bytes ClaimUser::*part,
    Rooms& rooms,
    ClaimBytes& lower) {
    const PlannedJob& job = table.jobs[job_index];
    std::map<std::uint32_t, std::vector<std::size_t>> by_account;
    for (const std::size_t index : job.claims) {
        const std::uint32_t account = table.claims[index].account;
        if ((table.accounts[account].quota.ns != job.demand->job.ns) == guest) {
            by_account[account].push_back(index);
        }
    }
    for (const auto& [account, claims] : by_account) {
        std::vector<Bytes> needs;
        for (const std::size_t index : claims) {
            const Claim& claim = table.claims[index];
            const Bytes missing = claim.user(job_index).*part - lower[index];
            needs.push_back(std::min(missing, rooms.nodes[claim.node]));
        }
        const std::vector<Bytes> amounts = level_fill(needs, rooms.accounts[account]);
        for (std::size_t i = 0; i < amounts.size(); ++i) {
            const Claim& claim = table.claims[claims[i]];
            const Bytes more = rooms.growth(claim.node, account, amounts[i]);
            lower[claims[i]] += more;
            rooms.take(claim.node, account, more);
        }
    }
}

// Minimums of jobs that read their own namespace's datasets come before those of guests.
ClaimBytes reserve_minimums(const ClaimTable& table) {
    ClaimBytes lower(table.claims.size());
    Rooms rooms = nominal_rooms(table, lower);
    for (const bool guest : {false, true}) {
        for (const auto part : {&ClaimUser::minimum, &ClaimUser::fixed}) {
            for (std::size_t job = 0; job < table.jobs.size(); ++job) {
                reserve(table, job, guest, part, rooms, lower);
            }
        }
    }
    return lower;
}

// The pieces, truncated at `end`.
std::vector<ValuePiece> cut(std::vector<ValuePiece> pieces, Bytes end) {
    const auto after =
        std::ranges::find_if(pieces, [end](const ValuePiece& piece) { return piece.end >= end; });
    if (after != pieces.end()) {
        after->end = end;
        pieces.erase(end == Bytes::zero() ? after : after + 1, pieces.end());
    }
    return pieces;
}

// Gives each claim `lower` and divides `rooms`, the room beyond that, by value. `guarantee`: if
// set, distributes exactly the bytes that nominal quotas guarantee.
ClaimBytes fill(
    const ClaimTable& table, Rooms rooms, const ClaimBytes& lower, const Guarantee* guarantee) {
    FillProblem problem;
    problem.rooms = std::move(rooms);
    problem.fill_accounts = guarantee != nullptr;
    PieceOptions options;
    options.fair = guarantee == nullptr;
    options.chord_count = std::clamp<std::size_t>(
        kPieceCountMax / std::max<std::size_t>(table.claims.size(), 1), 1, kChordCount);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        std::vector<ValuePiece> pieces = value_pieces(table, claim, options);
        if (guarantee != nullptr) {
            pieces = cut(std::move(pieces), useful_end(table, claim));
        }
        // Objective::kEven is a baseline for comparisons: it must not depend on earlier grants.
        const bool from_held = table.pool.objective != Objective::kEven;
        const Bytes start = from_held ? std::max(claim.planned, lower[i]) : lower[i];
        problem.items.push_back({claim.node, claim.account, std::move(pieces), lower[i], start});
    }
    return water_fill(problem);
}

// Groups claims that have the same dataset and are read by the same jobs; each group is sorted by node.
std::vector<std::vector<std::size_t>> same_claims(const ClaimTable& table) {
    std::map<std::pair<std::string, std::vector<std::size_t>>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        std::vector<std::size_t> jobs;
        for (const ClaimUser& user : table.claims[i].users) {
            if (!table.jobs[user.job].is_fill()) {
                jobs.push_back(user.job);
            }
        }
        groups[{table.claims[i].uid, std::move(jobs)}].push_back(i);
    }
    std::vector<std::vector<std::size_t>> result;
    for (auto& entry : groups) {
        result.push_back(std::move(entry.second));
    }
    return result;
}

// Whether the group's bytes are worth less if they are divided as `levelled`: nodes may differ in
// their readers.
bool loses_value(
    const ClaimTable& table,
    const std::vector<std::size_t>& group,
    const ClaimBytes& amounts,
    const std::vector<Bytes>& levelled) {
    ValueChange change;
    for (std::size_t i = 0; i < group.size() && has_value(table.pool.objective); ++i) {
        change.add(table, table.claims[group[i]], amounts[group[i]], levelled[i]);
    }
    return change.loses();
}

// Equalizes a dataset's bytes on its nodes where no other claim is affected and no value is lost: a
// job is as fast as its slowest node.
void balance(const ClaimTable& table, ClaimBytes& amounts) {
    std::vector<Bytes> room = nominal_rooms(table, amounts).nodes;
    for (const std::vector<std::size_t>& group : same_claims(table)) {
        std::vector<Bytes> most;
        Bytes all{};
        for (const std::size_t i : group) {
            const Claim& claim = table.claims[i];
            most.push_back(std::min(claim.limit, amounts[i] + room[claim.node]));
            const bool unknown =
                std::any_of(claim.users.begin(), claim.users.end(), [&](const ClaimUser& user) {
                    return table.jobs[user.job].knowledge == JobKnowledge::kProfiling;
                });
            if (unknown) {
                most.back() = std::min(most.back(), std::max(amounts[i], even_share(table, claim)));
            }
            all += amounts[i];
        }
        const std::vector<Bytes> levelled = level_fill(most, all);
        if (loses_value(table, group, amounts, levelled)) {
            continue;
        }
        for (std::size_t i = 0; i < group.size(); ++i) {
            Bytes& free = room[table.claims[group[i]].node];
            free = free + amounts[group[i]] - levelled[i];
            amounts[group[i]] = levelled[i];
        }
    }
}

// Computes the bytes of each target that are not borrowed: all bytes covered by nominal quotas, and
// an even share of the bytes outside all nominal quotas.
void count_own(const ClaimTable& table, PoolDecision& decision) {
    decision.within.clear();
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        decision.within.push_back(std::min(decision.guaranteed[i], decision.target[i]));
    }
    const std::vector<Bytes> used = account_uses(table, decision.target);
    const std::vector<Bytes> firm = account_uses(table, decision.within);
    std::vector<Bytes> beyond;
    Bytes unnamed = cohort_bytes(table);
    for (std::size_t i = 0; i < used.size(); ++i) {
        beyond.push_back(used[i] - table.accounts[i].quota.nominal);
        unnamed -= table.accounts[i].quota.nominal;
    }
    std::vector<Bytes> spare = level_fill(beyond, unnamed);
    for (std::size_t i = 0; i < used.size(); ++i) {
        spare[i] += table.accounts[i].quota.nominal - firm[i];
    }
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        Bytes& left = spare[table.claims[i].account];
        const Bytes own = std::min(decision.target[i] - decision.within[i], left);
        decision.within[i] += own;
        left -= own;
    }
}

// Gives each claim `base` and divides `rooms`, the room beyond that, by the pool's objective.
// `guarantee`: as for fill().
ClaimBytes divide(
    const ClaimTable& table, Rooms rooms, const ClaimBytes& base, const Guarantee* guarantee) {
    if (table.pool.objective != Objective::kMaxMin) {
        return fill(table, std::move(rooms), base, guarantee);
    }
    const ClaimBytes raised = raise_the_slowest(table, rooms, base, guarantee);
    for (std::size_t i = 0; i < raised.size(); ++i) {
        rooms.take(table.claims[i].node, table.claims[i].account, raised[i] - base[i]);
    }
    return fill(table, std::move(rooms), raised, guarantee);
}

// Computes the targets from the minimums. `kept`: result of kept_lent().
void find_targets(const ClaimTable& table, const std::vector<Bytes>& kept, PoolDecision& decision) {
    const Guarantee guarantee{table, decision.lower, kept};
    decision.owed = guarantee.owed();
    Rooms rooms = nominal_rooms(table, decision.lower, kept);
    rooms.accounts = decision.owed;
    rooms.own = decision.owed;
    decision.guaranteed = divide(table, std::move(rooms), decision.lower, &guarantee);
    rooms = borrowing_rooms(table, decision.guaranteed, kept);
    decision.target = divide(table, std::move(rooms), decision.guaranteed, nullptr);
    balance(table, decision.target);
    if (moves_within_a_step(table, decision)) {
        decision.target = last_targets(table);
    } else if (has_value(table.pool.objective)) {
        const ClaimBytes mended = mend_last_plan(table, decision);
        if (mended != decision.target) {
            decision.target = fill(table, borrowing_rooms(table, mended, kept), mended, nullptr);
        }
    }
}

// Reduces `kept` to the bytes that borrowers still use; returns whether it changed.
bool give_up_unused(
    const ClaimTable& table, const PoolDecision& decision, std::vector<Bytes>& kept) {
    const std::vector<Bytes> lent = lent_to_jobs(table, decision.target);
    bool less = false;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        less |= lent[i] < kept[i];
        kept[i] = std::min(kept[i], lent[i]);
    }
    return less;
}

struct Growth {
    bool minimum = false;
    double value = 0;
    std::size_t claim = 0;
};

// Claims that may grow: minimums first, then by the value of the next byte.
std::vector<Growth> growths_of(
    const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& reserves) {
    std::vector<Growth> growths;
    for (std::size_t i = 0; i < reserves.size(); ++i) {
        const Claim& claim = table.claims[i];
        const bool held_back = table.accounts[claim.account].held_back != nullptr;
        if (claim.in_flight || held_back || !table.settled || decision.target[i] <= reserves[i]) {
            continue;
        }
        double value = 0;
        for (const ClaimUser& user : claim.users) {
            value += table.jobs[user.job].weight * saved_by_next(table, user, reserves[i]);
        }
        growths.push_back({reserves[i] < decision.lower[i], value, i});
    }
    std::stable_sort(growths.begin(), growths.end(), [](const Growth& a, const Growth& b) {
        return std::tie(b.minimum, b.value) < std::tie(a.minimum, a.value);
    });
    return growths;
}

// For each node: whether its claims may together hold more than its capacity.
std::vector<bool> overfull_nodes(const ClaimTable& table, const ClaimBytes& reserves) {
    const std::vector<Bytes> used = node_uses(table, reserves);
    std::vector<bool> result;
    for (std::size_t i = 0; i < used.size(); ++i) {
        result.push_back(used[i] > table.nodes[i].capacity);
    }
    return result;
}

// Present grants on the way to the targets: claims shrink before others grow. Bytes that may still
// be held elsewhere stay reserved; the remaining room goes to minimums, then to nominal guarantees,
// then to the targets of jobs, then to those of fills.
ClaimBytes grow_safely(const ClaimTable& table, PoolDecision& decision) {
    const ClaimBytes reserves = reserves_of(table);
    Rooms rooms = borrowing_rooms(table, reserves);
    const std::vector<Bytes> used = account_uses(table, reserves);
    const bool is_overdrawn = overdraft_of(table, reserves) > Bytes::zero();
    const std::vector<bool> is_overfull = overfull_nodes(table, reserves);
    ClaimBytes granted;
    for (std::size_t i = 0; i < reserves.size(); ++i) {
        const Claim& claim = table.claims[i];
        // A claim may stay at its reserve (the larger of resident bytes and outstanding grant):
        // that is no growth. If a quota is overdrawn or the node is overfull, the claim keeps at
        // most its last grant.
        const bool shrinks = is_overdrawn || is_overfull[claim.node] ||
                             used[claim.account] > table.accounts[claim.account].most();
        const Bytes now = shrinks ? std::min(claim.held, reserves[i]) : reserves[i];
        granted.push_back(claim.in_flight ? claim.held : std::min(decision.target[i], now));
        decision.withheld.push_back(shrinks && claim.uncounted && claim.resident > Bytes::zero());
    }
    const std::vector<Growth> growths = growths_of(table, decision, reserves);
    for (const ClaimBytes* goal :
         {&decision.lower, &decision.guaranteed, &decision.by_jobs, &decision.target}) {
        for (const Growth& growth : growths) {
            const Claim& claim = table.claims[growth.claim];
            Bytes& grant = granted[growth.claim];
            const Bytes end = std::min((*goal)[growth.claim], decision.target[growth.claim]);
            const Bytes more = rooms.growth(claim.node, claim.account, end - grant);
            rooms.take(claim.node, claim.account, more);
            grant += more;
        }
    }
    return granted;
}

}  // namespace

PoolDecision decide_pool(const ClaimTable& table) {
    constexpr int kRoundsMax = 4;
    PoolDecision decision;
    decision.lower = reserve_minimums(table);
    std::vector<Bytes> kept = kept_lent(table);
    find_targets(table, kept, decision);
    for (int i = 1; i < kRoundsMax && give_up_unused(table, decision, kept); ++i) {
        find_targets(table, kept, decision);
    }
    decision.by_jobs = decision.target;
    grant_fills(table, kept, decision.target);
    count_own(table, decision);
    decision.granted = grow_safely(table, decision);
    share_bandwidth(table, decision);
    return decision;
}

}  // namespace stoker::control
