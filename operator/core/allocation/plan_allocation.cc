#include "operator/core/allocation/plan_allocation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "operator/core/allocation/guarantee.h"
#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/plan_allocation_state.h"
#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

namespace {

constexpr std::size_t kChordCount = 16;
constexpr std::size_t kPieceCountMax = 400'000;  // more claims than that many are cut more coarsely

// Raises the job's claims to what `part` says of each user, as far as nodes and the nominal quotas
// of those who pay allow, in equal parts where a quota does not suffice. `guest`: claims of other
// namespaces' datasets, or of its own.
void reserve(
    const ClaimTable& table,
    std::size_t job_index,
    bool guest,
    Bytes ClaimUser::*part,
    Ledger& ledger,
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
            const auto user = std::ranges::find(claim.users, job_index, &ClaimUser::job);
            needs.push_back(std::min((*user).*part - lower[index], ledger.node_room(claim.node)));
        }
        const std::vector<Bytes> amounts = level_fill(needs, ledger.account_room(account));
        for (std::size_t i = 0; i < amounts.size(); ++i) {
            const Claim& claim = table.claims[claims[i]];
            const Bytes more = ledger.growth(claim, amounts[i]);
            lower[claims[i]] += more;
            ledger.add(claim, more);
        }
    }
}

// What a namespace's own jobs need comes before what guests of its datasets ask for.
ClaimBytes reserve_minimums(const ClaimTable& table) {
    ClaimBytes lower(table.claims.size());
    Ledger ledger{table, lower, Ledger::Borrowing::kNo};
    for (const bool guest : {false, true}) {
        for (const auto part : {&ClaimUser::minimum, &ClaimUser::fixed}) {
            for (std::size_t job = 0; job < table.jobs.size(); ++job) {
                reserve(table, job, guest, part, ledger, lower);
            }
        }
    }
    return lower;
}

FillItem make_item(
    const Claim& claim, const std::vector<ClaimPiece>& pieces, Bytes lower, Bytes end_max) {
    FillItem item;
    item.node = claim.node;
    item.account = claim.account;
    item.lower = lower.count();
    item.start = std::max(claim.held, lower).count();
    Bytes begin{};
    for (const ClaimPiece& piece : pieces) {
        const Bytes end = std::min(piece.end, end_max);
        if (end > begin) {
            item.pieces.push_back({(end - begin).count(), piece.value});
            begin = end;
        }
    }
    return item;
}

// `guarantee`: given, what it owes is given out, and nothing else.
ClaimBytes fill(
    const ClaimTable& table, Rooms rooms, const ClaimBytes& lower, const Guarantee* guarantee) {
    FillProblem problem;
    problem.node_room = std::move(rooms.nodes);
    problem.account_room = std::move(rooms.accounts);
    problem.account_own = std::move(rooms.own);
    problem.common_room = rooms.common;
    problem.fill_accounts = guarantee != nullptr;
    PieceOptions options;
    options.fair = guarantee == nullptr;
    options.chord_count = std::clamp<std::size_t>(
        kPieceCountMax / std::max<std::size_t>(table.claims.size(), 1), 1, kChordCount);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes end = guarantee != nullptr ? useful_end(table, claim) : Bytes::unlimited();
        problem.items.push_back(
            make_item(claim, value_pieces(table, claim, options), lower[i], end));
        // The baseline is the same whatever was granted before.
        if (table.pool.objective == Objective::kEven) {
            problem.items.back().start = lower[i].count();
        }
    }
    ClaimBytes result;
    for (const std::uint64_t bytes : water_fill(problem)) {
        result.emplace_back(bytes);
    }
    return result;
}

// Claims in groups of one dataset and the same users, each group in the order of the nodes.
std::vector<std::vector<std::size_t>> same_claims(const ClaimTable& table) {
    std::map<std::pair<std::string, std::vector<std::size_t>>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        std::vector<std::size_t> jobs;
        for (const ClaimUser& user : table.claims[i].users) {
            jobs.push_back(user.job);
        }
        groups[{table.claims[i].uid, std::move(jobs)}].push_back(i);
    }
    std::vector<std::vector<std::size_t>> result;
    for (auto& entry : groups) {
        result.push_back(std::move(entry.second));
    }
    return result;
}

// Same bytes of a dataset on each of its nodes, where that changes nothing for anybody else: a job
// is as fast as its slowest node.
void balance(const ClaimTable& table, ClaimBytes& amounts) {
    const Rooms rooms = nominal_rooms(table, amounts);
    std::vector<Bytes> room;
    for (const std::uint64_t bytes : rooms.nodes) {
        room.emplace_back(bytes);
    }
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
        for (std::size_t i = 0; i < group.size(); ++i) {
            Bytes& free = room[table.claims[group[i]].node];
            free = free + amounts[group[i]] - levelled[i];
            amounts[group[i]] = levelled[i];
        }
    }
}

// raise_the_slowest(), and the rooms that it leaves.
ClaimBytes raise(
    const ClaimTable& table, Rooms& rooms, const ClaimBytes& given, const Guarantee* guarantee) {
    ClaimBytes raised = raise_the_slowest(table, rooms, given, guarantee);
    for (std::size_t i = 0; i < raised.size(); ++i) {
        const Claim& claim = table.claims[i];
        const std::uint64_t more = (raised[i] - given[i]).count();
        const std::uint64_t own = std::min(rooms.own[claim.account], more);
        rooms.nodes[claim.node] -= more;
        rooms.accounts[claim.account] -= more;
        rooms.own[claim.account] -= own;
        rooms.common -= rooms.common == FillProblem::kNoLimit ? 0 : more - own;
    }
    return raised;
}

// What is not borrowed of the targets: all that the nominal quotas cover, and even parts of what no
// quota names.
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

// Whether the claims may have `held` instead of the targets: on their nodes, within their accounts'
// limits, and without taking from what is owed.
bool fits(const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& held) {
    const Ledger planned{table, decision.target, Ledger::Borrowing::kYes};
    const Ledger now{table, held, Ledger::Borrowing::kYes};
    std::vector<Bytes> on_node(table.nodes.size());
    std::vector<Bytes> planned_on_node(table.nodes.size());
    std::vector<Bytes> owed;
    for (const std::uint64_t bytes : decision.owed) {
        owed.emplace_back(bytes);
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
        const Claim& claim = table.claims[i];
        on_node[claim.node] += held[i];
        planned_on_node[claim.node] += decision.target[i];
        owed[claim.account] += decision.lower[i];
        if (now.is_overdrawn(claim)) {
            return false;
        }
    }
    for (std::size_t i = 0; i < owed.size(); ++i) {
        if (now.used(i) < std::min(owed[i], planned.used(i))) {
            return false;
        }
    }
    for (std::size_t i = 0; i < on_node.size(); ++i) {
        if (on_node[i] > planned_on_node[i] + planned.node_room(i)) {
            return false;
        }
    }
    return true;
}

// Where nothing would change but that no more than a step moves from some claims to others, nothing
// does: amounts that are divided among nodes and rounded anew could go on so for ever.
void stay_within_a_step(const ClaimTable& table, PoolDecision& decision) {
    Bytes planned_in_all{};
    for (const Bytes bytes : decision.target) {
        planned_in_all += bytes;
    }
    // A byte a node, but only where that is next to nothing.
    constexpr std::uint64_t kNextToNothing = 256;
    const Bytes rounding{
        std::min<std::uint64_t>(table.nodes.size(), planned_in_all.count() / kNextToNothing)};
    ClaimBytes held;
    Bytes held_in_all{};
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        const Bytes planned = decision.target[i];
        const Bytes change = std::max(claim.held, planned) - std::min(claim.held, planned);
        const auto lacks = [&](const ClaimUser& user) {
            return claim.held < std::min(planned, user.minimum);
        };
        if (change > table.step + rounding || claim.held > claim.limit ||
            claim.held < std::min(planned, decision.lower[i]) ||
            std::ranges::any_of(claim.users, lacks)) {
            return;
        }
        held.push_back(claim.held);
        held_in_all += claim.held;
    }
    if (held_in_all <= planned_in_all && planned_in_all <= held_in_all + rounding &&
        fits(table, decision, held)) {
        decision.target = std::move(held);
    }
}

// From the minimums to the targets. `kept`: kept_lent().
void find_targets(const ClaimTable& table, const std::vector<Bytes>& kept, PoolDecision& decision) {
    const bool max_min = table.pool.objective == Objective::kMaxMin;
    const Guarantee guarantee{table, decision.lower, kept};
    decision.owed = guarantee.owed();
    Rooms rooms = nominal_rooms(table, decision.lower, kept);
    rooms.accounts = decision.owed;
    rooms.own = decision.owed;
    ClaimBytes base = decision.lower;
    if (max_min) {
        base = raise(table, rooms, base, &guarantee);
    }
    decision.guaranteed = fill(table, std::move(rooms), base, &guarantee);
    base = decision.guaranteed;
    rooms = borrowing_rooms(table, base, kept);
    if (max_min) {
        base = raise(table, rooms, base, nullptr);
    }
    decision.target = fill(table, std::move(rooms), base, nullptr);
    balance(table, decision.target);
    stay_within_a_step(table, decision);
    count_own(table, decision);
}

// `kept` down to what the borrowers still have use for; whether that is less.
bool give_up_unused(
    const ClaimTable& table, const PoolDecision& decision, std::vector<Bytes>& kept) {
    const std::vector<Bytes> lent = lent_of(table, decision.target);
    bool less = false;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        less |= lent[i] < kept[i];
        kept[i] = std::min(kept[i], lent[i]);
    }
    return less;
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
    decision.granted = grow_safely(table, decision);
    share_bandwidth(table, decision);
    return decision;
}

ClaimBytes grow_safely(const ClaimTable& table, const PoolDecision& decision) {
    const ClaimBytes reserves = reserves_of(table);
    Ledger ledger{table, reserves, Ledger::Borrowing::kYes};

    struct Growth {
        bool minimum = false;
        double value = 0;
        std::size_t claim = 0;
    };

    std::vector<Growth> growths;
    ClaimBytes granted;
    for (std::size_t i = 0; i < reserves.size(); ++i) {
        if (table.claims[i].in_flight) {
            granted.push_back(table.claims[i].held);
            continue;
        }
        // What it may have by now is no growth, unless somebody has to give back first: it may have
        // less already than was heard of it.
        const bool shrinks = ledger.is_overdrawn(table.claims[i]);
        const Bytes now = shrinks ? std::min(table.claims[i].held, reserves[i]) : reserves[i];
        granted.push_back(std::min(decision.target[i], now));
        const bool held_back = table.accounts[table.claims[i].account].held_back != nullptr;
        if (decision.target[i] > reserves[i] && table.settled && !held_back) {
            double value = 0;
            for (const ClaimUser& user : table.claims[i].users) {
                const PlannedJob& job = table.jobs[user.job];
                value += job.weight * user.rate * user.fetched *
                         job.curves[user.dataset].marginal(reserves[i]);
            }
            growths.push_back({reserves[i] < decision.lower[i], value, i});
        }
    }
    std::stable_sort(growths.begin(), growths.end(), [](const Growth& a, const Growth& b) {
        return std::tie(b.minimum, b.value) < std::tie(a.minimum, a.value);
    });
    // First to the minimums, then to what nominal quotas guarantee, then to the targets.
    for (const ClaimBytes* goal : {&decision.lower, &decision.guaranteed, &decision.target}) {
        for (const Growth& growth : growths) {
            const std::size_t i = growth.claim;
            const Bytes goal_now = std::min((*goal)[i], decision.target[i]);
            const Bytes more = ledger.growth(table.claims[i], goal_now - granted[i]);
            ledger.add(table.claims[i], more);
            granted[i] += more;
        }
    }
    return granted;
}

namespace {

using GrantsByPlace = std::map<std::pair<std::string, std::string>, Grant>;  // node, uid

void add_grants(
    const ClaimTable& table,
    const PoolDecision& decision,
    std::uint32_t valid_seconds,
    GrantsByPlace& grants) {
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        Grant& grant = grants[{table.nodes[claim.node].name, claim.uid}];
        grant.node = table.nodes[claim.node].name;
        grant.dataset_uid = claim.uid;
        grant.resident_bytes = std::max(grant.resident_bytes, decision.granted[i]);
        grant.valid_seconds = valid_seconds;
        grant.origin_bytes_per_second = decision.origin_limit[i];
        // Reason of the job of the highest priority, then the oldest, that uses it.
        grant.reason = to_string(decision.reasons[claim.users.front().job]);
    }
}

}  // namespace

AllocationPlan plan_allocation(const AllocationView& view) {
    AllocationPlan plan;
    GrantsByPlace grants;
    for (const auto& [pool, table] : make_claim_tables(view)) {
        PoolDecision decision = decide_pool(table);
        for (const Bytes granted : decision.granted) {
            plan.granted_in_pool[pool] += granted;
        }
        explain_pool(table, decision, plan);
        add_grants(table, decision, view.valid_seconds, grants);
    }
    for (auto& entry : grants) {
        plan.grants.push_back(std::move(entry.second));
    }
    const auto by_job = [](const auto& a, const auto& b) { return a.job < b.job; };
    std::sort(plan.jobs.begin(), plan.jobs.end(), by_job);
    std::sort(plan.charges.begin(), plan.charges.end(), by_job);
    const auto by_place = [](const auto& a, const auto& b) {
        return std::tie(a.node, a.dataset_uid) < std::tie(b.node, b.dataset_uid);
    };
    std::sort(plan.reclaims.begin(), plan.reclaims.end(), by_place);
    std::sort(plan.sweeps.begin(), plan.sweeps.end(), by_place);
    std::sort(plan.quotas.begin(), plan.quotas.end(), [](const auto& a, const auto& b) {
        return std::tie(a.ns, a.pool) < std::tie(b.ns, b.pool);
    });
    return plan;
}

}  // namespace stoker::control
