#include "operator/core/allocation/plan_allocation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/plan_allocation_state.h"
#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

namespace {

constexpr std::size_t kChordCount = 16;
constexpr std::size_t kPieceCountMax = 400'000;  // more claims than that many are cut more coarsely

// The same for each of the job's claims, as far as they need it and `budget`, what its namespace
// can be charged, suffices: for a dataset that others share, it is charged a part.
std::vector<Bytes> level_within(
    const ClaimTable& table, const PlannedJob& job, const std::vector<Bytes>& needs, Bytes budget) {
    Bytes all{};
    for (const Bytes need : needs) {
        all += need;
    }
    std::uint64_t enough = budget.count();
    std::uint64_t too_much = all.is_unlimited() ? all.count() : all.count() + 1;
    while (enough < too_much && too_much - enough > 1) {
        const std::uint64_t middle = enough + (too_much - enough) / 2;
        const std::vector<Bytes> amounts = level_fill(needs, Bytes{middle});
        Bytes charged{};
        for (std::size_t i = 0; i < amounts.size(); ++i) {
            charged += charge(table.claims[job.claims[i]], amounts[i]);
        }
        (charged <= budget ? enough : too_much) = middle;
    }
    return level_fill(needs, Bytes{enough});
}

// Raises the job's claims to what `part` says of each user, as far as nodes and nominal quotas
// allow, in equal parts where the quota does not suffice.
void reserve(
    const ClaimTable& table,
    const PlannedJob& job,
    std::size_t job_index,
    Bytes ClaimUser::*part,
    Ledger& ledger,
    ClaimBytes& lower) {
    std::vector<Bytes> needs;
    Bytes budget = Bytes::unlimited();
    for (const std::size_t index : job.claims) {
        const Claim& claim = table.claims[index];
        Bytes goal{};
        for (const ClaimUser& user : claim.users) {
            goal = user.job == job_index ? user.*part : goal;
        }
        Bytes need = std::min(goal - lower[index], ledger.node_room(claim.node));
        for (const std::uint32_t account : claim.accounts) {
            const Bytes room = ledger.account_room(account);
            if (table.accounts[account].quota.ns == job.demand->job.ns) {
                budget = room;
            } else {
                need = std::min(need, room * claim.parts);
            }
        }
        needs.push_back(need);
    }
    const std::vector<Bytes> amounts = level_within(table, job, needs, budget);
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const std::size_t index = job.claims[i];
        const Bytes more = ledger.growth(table.claims[index], amounts[i]);
        lower[index] += more;
        ledger.add(table.claims[index], more);
    }
}

ClaimBytes reserve_minimums(const ClaimTable& table) {
    ClaimBytes lower(table.claims.size());
    Ledger ledger{table, lower, Ledger::Borrowing::kNo};
    for (const auto part : {&ClaimUser::minimum, &ClaimUser::fixed}) {
        for (std::size_t job = 0; job < table.jobs.size(); ++job) {
            reserve(table, table.jobs[job], job, part, ledger, lower);
        }
    }
    return lower;
}

FillItem make_item(const Claim& claim, const std::vector<ClaimPiece>& pieces, Bytes lower) {
    FillItem item;
    item.node = claim.node;
    item.accounts = claim.accounts;
    item.parts = claim.accounts.empty() ? 1 : claim.parts;
    item.lower = lower.count();
    item.start = std::max(claim.held, lower).count();
    Bytes begin{};
    for (const ClaimPiece& piece : pieces) {
        item.pieces.push_back({(piece.end - begin).count(), piece.value});
        begin = piece.end;
    }
    return item;
}

ClaimBytes fill(const ClaimTable& table, Rooms rooms, const ClaimBytes& lower, bool fair) {
    FillProblem problem;
    problem.node_room = std::move(rooms.nodes);
    problem.account_room = std::move(rooms.accounts);
    problem.common_room = rooms.common;
    PieceOptions options;
    options.fair = fair;
    options.chord_count = std::clamp<std::size_t>(
        kPieceCountMax / std::max<std::size_t>(table.claims.size(), 1), 1, kChordCount);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        problem.items.push_back(make_item(claim, value_pieces(table, claim, options), lower[i]));
    }
    ClaimBytes result;
    for (const std::uint64_t bytes : water_fill(problem)) {
        result.emplace_back(bytes);
    }
    return result;
}

// The baseline: on each node everybody the same, then the same again within each quota.
ClaimBytes split_evenly(const ClaimTable& table, const Rooms& rooms, const ClaimBytes& lower) {
    ClaimBytes result = lower;
    for (std::size_t node = 0; node < table.nodes.size(); ++node) {
        const std::vector<std::size_t>& claims = table.nodes[node].claims;
        std::vector<Bytes> needs;
        for (const std::size_t index : claims) {
            needs.push_back(table.claims[index].limit - lower[index]);
        }
        const std::vector<Bytes> amounts = level_fill(needs, Bytes{rooms.nodes[node]});
        for (std::size_t i = 0; i < claims.size(); ++i) {
            result[claims[i]] += amounts[i];
        }
    }
    for (std::uint32_t account = 0; account < table.accounts.size(); ++account) {
        std::vector<std::size_t> claims;
        std::vector<Bytes> needs;
        for (std::size_t i = 0; i < table.claims.size(); ++i) {
            const std::vector<std::uint32_t>& accounts = table.claims[i].accounts;
            if (std::find(accounts.begin(), accounts.end(), account) != accounts.end()) {
                claims.push_back(i);
                needs.push_back(charge(table.claims[i], result[i] - lower[i]));
            }
        }
        const std::vector<Bytes> amounts = level_fill(needs, Bytes{rooms.accounts[account]});
        for (std::size_t i = 0; i < claims.size(); ++i) {
            const std::size_t at = claims[i];
            const Bytes most = lower[at] + amounts[i] * table.claims[at].parts;
            result[at] = std::min(result[at], most);
        }
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
        // In whole parts of those who share the charge, so that rounding charges nobody more.
        const std::uint64_t parts = table.claims[group.front()].parts;
        for (Bytes& bytes : most) {
            bytes = Bytes{bytes.count() / parts};
        }
        const std::vector<Bytes> levelled = level_fill(most, Bytes{all.count() / parts});
        for (std::size_t i = 0; i < group.size(); ++i) {
            Bytes& free = room[table.claims[group[i]].node];
            const Bytes bytes = levelled[i] * parts;
            free = free + amounts[group[i]] - bytes;
            amounts[group[i]] = bytes;
        }
    }
}

// raise_the_slowest(), and the rooms that it leaves.
ClaimBytes raise(const ClaimTable& table, Rooms& rooms, const ClaimBytes& given) {
    ClaimBytes raised = raise_the_slowest(table, rooms, given);
    for (std::size_t i = 0; i < raised.size(); ++i) {
        const Claim& claim = table.claims[i];
        rooms.nodes[claim.node] -= (raised[i] - given[i]).count();
        for (const std::uint32_t account : claim.accounts) {
            rooms.accounts[account] -= (charge(claim, raised[i]) - charge(claim, given[i])).count();
        }
        if (!claim.accounts.empty() && rooms.common != FillProblem::kNoLimit) {
            rooms.common -= (raised[i] - given[i]).count();
        }
    }
    return raised;
}

// What an owner has won back from borrowers is within its quota, not borrowed.
void count_won_back(
    const ClaimTable& table, const std::vector<Bytes>& kept, PoolDecision& decision) {
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const std::vector<std::uint32_t>& accounts = table.claims[i].accounts;
        const bool by_owners = std::ranges::all_of(
            accounts, [&](std::uint32_t account) { return kept[account] > Bytes::zero(); });
        if (!accounts.empty() && by_owners) {
            decision.within[i] = decision.target[i];
        }
    }
}

// From the minimums to the targets. `kept`: kept_lent().
void find_targets(const ClaimTable& table, const std::vector<Bytes>& kept, PoolDecision& decision) {
    const bool max_min = table.pool.objective == Objective::kMaxMin;
    Rooms rooms = nominal_rooms(table, decision.lower, kept);
    ClaimBytes base = decision.lower;
    if (max_min) {
        base = raise(table, rooms, base);
    }
    decision.within = fill(table, std::move(rooms), base, false);
    base = decision.within;
    rooms = borrowing_rooms(table, base);
    if (max_min) {
        base = raise(table, rooms, base);
    }
    decision.target = fill(table, std::move(rooms), base, true);
    balance(table, decision.target);
    count_won_back(table, kept, decision);
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
    if (table.pool.objective == Objective::kEven) {
        decision.within = split_evenly(table, nominal_rooms(table, decision.lower), decision.lower);
        decision.target = decision.within;
    } else {
        std::vector<Bytes> kept = kept_lent(table);
        find_targets(table, kept, decision);
        for (int i = 1; i < kRoundsMax && give_up_unused(table, decision, kept); ++i) {
            find_targets(table, kept, decision);
        }
    }
    decision.granted = grow_safely(table, decision);
    rest_where_only_rounding_moves(table, decision);
    share_bandwidth(table, decision);
    return decision;
}

ClaimBytes grow_safely(const ClaimTable& table, const PoolDecision& decision) {
    const ClaimBytes reserves = reserves_of(table);
    Ledger ledger{table, reserves, Ledger::Borrowing::kYes, ChargedTo::kPayers};

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
        const bool shrinks = !table.claims[i].handed_over || ledger.is_overdrawn(table.claims[i]);
        const Bytes now = shrinks ? std::min(table.claims[i].held, reserves[i]) : reserves[i];
        granted.push_back(std::min(decision.target[i], now));
        const bool held_back = std::any_of(
            table.claims[i].users.begin(), table.claims[i].users.end(), [&](const ClaimUser& user) {
                return table.jobs[user.job].held_back != nullptr;
            });
        if (decision.target[i] > reserves[i] && table.settled && table.claims[i].handed_over &&
            !held_back) {
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
    // First to the minimums, then to the targets.
    for (const ClaimBytes* goal : {&decision.lower, &decision.target}) {
        for (const Growth& growth : growths) {
            const std::size_t i = growth.claim;
            const Bytes more = ledger.growth(table.claims[i], (*goal)[i] - granted[i]);
            ledger.add(table.claims[i], more);
            granted[i] += more;
        }
    }
    return granted;
}

namespace {

using GrantsByPlace = std::map<std::pair<std::string, std::string>, AgentGrant>;  // node, uid

void add_grants(
    const ClaimTable& table,
    const PoolDecision& decision,
    std::uint32_t valid_seconds,
    GrantsByPlace& grants) {
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        AgentGrant& grant = grants[{table.nodes[claim.node].name, claim.uid}];
        grant.node = table.nodes[claim.node].name;
        grant.dataset_uid = claim.uid;
        grant.resident_bytes = std::max(grant.resident_bytes, decision.granted[i]);
        grant.valid_seconds = valid_seconds;
        grant.origin_bytes_per_second = decision.origin_limit[i];
        // Of the job of the highest priority, then the oldest, that uses it.
        grant.reason = to_string(decision.reasons[claim.users.front().job]);
    }
}

void add_payers(const ClaimTable& table, AllocationPlan& plan) {
    for (const Claim& claim : table.claims) {
        plan.payers.push_back(
            {table.pool.pool,
             table.nodes[claim.node].name,
             claim.uid,
             claim.payers_known ? claim.payers.names : std::vector<std::string>{}});
    }
    for (const IdleHolding& idle : table.idle) {
        plan.payers.push_back(
            {table.pool.pool, table.nodes[idle.node].name, idle.uid, idle.payers.names});
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
        add_payers(table, plan);
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
    std::sort(plan.payers.begin(), plan.payers.end(), [](const auto& a, const auto& b) {
        return std::tie(a.pool, a.node, a.dataset_uid) < std::tie(b.pool, b.node, b.dataset_uid);
    });
    std::sort(plan.quotas.begin(), plan.quotas.end(), [](const auto& a, const auto& b) {
        return std::tie(a.ns, a.pool) < std::tie(b.ns, b.pool);
    });
    return plan;
}

}  // namespace stoker::control
