// Compares decide_pool() with every possible division of small clusters: at most 4 jobs, 3 nodes, 3
// namespaces. The value of a division is computed here independently, from the formulas;
// tests/support/promised_minimums.h gives the guaranteed minimums, and tests/support/owed_bytes.h
// each namespace's owed bytes.

#include "operator/core/allocation/decide_pool.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/owed_bytes.h"
#include "tests/support/promised_minimums.h"
#include "tests/unit/operator/core/allocation/brute_force_clusters.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kRounds = 10'000;
constexpr double kGib = kBytesOfGib;

double miss(const DemandDataset& dataset, std::uint64_t cached) {
    const double left =
        1 - static_cast<double>(cached) / static_cast<double>(dataset.total->count());
    return dataset.access.kind == AccessKind::kImportance
               ? std::pow(std::max(left, 0.0), 1 + dataset.access.beta)
               : std::max(left, 0.0);
}

// Value of the claim's bytes for one job.
double worth(const Demand& job, std::uint64_t cached, double ns_weight) {
    if (job.rates->compute_bound) {
        return 0;
    }
    const double share = std::min(1.0, job.rates->origin / job.rates->ingest);
    const double missed = std::max(miss(job.datasets[0], cached), share);
    return ns_weight * job.weight * job.rates->ingest / static_cast<double>(job.nodes.size()) *
           (1 - missed);
}

// Money that the bytes save, whether or not a job waits.
double saved_money(const Demand& job, const PoolView& pool, std::uint64_t cached) {
    const double size = job.datasets[0].sample_bytes;
    const double price = pool.price_per_gib / kGib + (size > 0 ? pool.price_per_request / size : 0);
    return job.weight * job.rates->ingest / static_cast<double>(job.nodes.size()) *
           (1 - miss(job.datasets[0], cached)) * price;
}

double speed(const Demand& job, std::uint64_t cached) {
    const double share =
        job.rates->origin > 0 ? std::min(1.0, job.rates->origin / job.rates->ingest) : 0.25;
    const double missed = miss(job.datasets[0], cached);
    return missed <= share ? 1 : share / missed;
}

// Tries every division with `lower` to `upper` bytes for each claim that fits the nodes and quotas
// and gives each account (the quota of one namespace) at least its `owed` bytes.
class BruteForce {
public:
    using Judge = std::function<double(const ClaimBytes&)>;

    BruteForce(
        const ClaimTable& table,
        ClaimBytes lower,
        ClaimBytes upper,
        Rooms rooms,
        std::vector<Bytes> owed)
        : table_(table),
          amounts_(lower),
          lower_(std::move(lower)),
          upper_(std::move(upper)),
          rooms_(std::move(rooms)),
          owed_(std::move(owed)) {}

    double best(const Judge& judge) {
        best_ = -1;
        visit(0, judge);
        return best_;
    }

private:
    void visit(std::size_t index, const Judge& judge) {
        if (index == table_.claims.size()) {
            const bool pays_all =
                std::ranges::all_of(owed_, [](Bytes left) { return left == Bytes::zero(); });
            best_ = pays_all ? std::max(best_, judge(amounts_)) : best_;
            return;
        }
        const Claim& claim = table_.claims[index];
        const Rooms before = rooms_;
        const std::vector<Bytes> owed = owed_;
        for (Bytes more{}; lower_[index] + more <= std::max(upper_[index], lower_[index]);
             more += Bytes{1}) {
            rooms_ = before;
            owed_ = owed;
            if (!take(claim, more)) {
                break;
            }
            amounts_[index] = lower_[index] + more;
            visit(index + 1, judge);
        }
        amounts_[index] = lower_[index];
        rooms_ = before;
        owed_ = owed;
    }

    bool take(const Claim& claim, Bytes more) {
        const auto fits = [](Bytes& room, Bytes bytes) {
            const bool fit = bytes <= room;
            room -= fit ? bytes : Bytes::zero();
            return fit;
        };
        const Bytes own = std::min(rooms_.own[claim.account], more);
        rooms_.own[claim.account] -= own;
        owed_[claim.account] -= more;
        return fits(rooms_.nodes[claim.node], more) && fits(rooms_.accounts[claim.account], more) &&
               fits(rooms_.common, more - own);
    }

    const ClaimTable& table_;
    ClaimBytes amounts_;
    ClaimBytes lower_;
    ClaimBytes upper_;
    Rooms rooms_;
    std::vector<Bytes> owed_;
    double best_ = -1;
};

double total_worth(const ClaimTable& table, const ClaimBytes& amounts, bool fair) {
    double sum = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const double weight = table.accounts[table.claims[i].account].quota.weight;
        for (const ClaimUser& user : table.claims[i].users) {
            const PlannedJob& job = table.jobs[user.job];
            sum += worth(*job.demand, amounts[i].count(), fair ? weight : 1);
        }
    }
    return sum;
}

double total_saved_money(const ClaimTable& table, const ClaimBytes& amounts, bool fair) {
    double sum = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        for (const ClaimUser& user : table.claims[i].users) {
            const double weight = table.accounts[table.claims[i].account].quota.weight;
            sum += (fair ? weight : 1) *
                   saved_money(*table.jobs[user.job].demand, table.pool, amounts[i].count());
        }
    }
    return sum;
}

// Speed of the slowest job, from 0 to 1. Bytes beyond a job's own maxBytes do not count for it.
double slowest(const ClaimTable& table, const ClaimBytes& amounts, bool /*fair*/) {
    double least = 1;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        for (const ClaimUser& user : table.claims[i].users) {
            const Demand& job = *table.jobs[user.job].demand;
            const Bytes counted = std::min(amounts[i], user.wanted);
            least = job.rates->compute_bound ? least : std::min(least, speed(job, counted.count()));
        }
    }
    return least;
}

using Check = std::function<void(const ClaimTable&, const PoolDecision&, const ClaimBytes& lower)>;

void expect_feasible(const ClaimTable& table, const PoolDecision& decision) {
    std::vector<std::uint64_t> nodes(table.nodes.size(), 0);
    std::vector<std::uint64_t> accounts(table.accounts.size(), 0);
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        nodes[claim.node] += decision.target[i].count();
        accounts[claim.account] += decision.target[i].count();
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        EXPECT_LE(nodes[i], table.nodes[i].capacity.count());
    }
    std::uint64_t borrowed = 0;
    std::uint64_t lendable = cohort_bytes(table).count();
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        const std::uint64_t nominal = quota.nominal.count();
        EXPECT_LE(accounts[i], nominal + quota.borrowing.count()) << quota.ns;
        borrowed += accounts[i] > nominal ? accounts[i] - nominal : 0;
        lendable -= nominal;
        lendable +=
            accounts[i] < nominal ? std::min(quota.lending.count(), nominal - accounts[i]) : 0;
    }
    EXPECT_LE(borrowed, lendable);
}

// Expects max-min shares of the origin's bandwidth over the jobs' misses under the plan, within a
// few bytes/s: the planner rounds to whole bytes.
void expect_fair_bandwidth(const ClaimTable& table, const PoolDecision& decision) {
    constexpr double kRounding = 5;
    const double budget = table.pool.origin_bytes_per_second;
    if (budget < 1) {
        return;
    }
    std::vector<double> needs(table.jobs.size(), 0);
    double all = 0;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        for (const ClaimUser& user : table.claims[i].users) {
            const Demand& job = *table.jobs[user.job].demand;
            const double need = job.rates->ingest / static_cast<double>(job.nodes.size()) *
                                miss(job.datasets[0], decision.target[i].count());
            needs[user.job] += need;
            all += need;
        }
    }
    double low = 0;
    double high = 100;
    for (int step = 0; step < 60 && all > budget; ++step) {
        const double middle = (low + high) / 2;
        double given = 0;
        for (const double need : needs) {
            given += std::min(need, middle);
        }
        (given > budget ? high : low) = middle;
    }
    for (std::size_t job = 0; job < needs.size(); ++job) {
        const double share = all <= budget ? needs[job] : std::min(needs[job], low);
        EXPECT_GE(decision.job_origin[job] + kRounding, share);
        // A job whose need is met may get more than its share.
        if (needs[job] > share + kRounding) {
            EXPECT_LE(decision.job_origin[job], share + kRounding);
        }
    }
}

// Returns the promised minimums by claim; expects that the planner computed the same minimums.
ClaimBytes expect_minimums(
    const AllocationView& view, const ClaimTable& table, const PoolDecision& decision) {
    const PromisedMinimums promised = promised_minimums(view);
    ClaimBytes lower;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        lower.emplace_back(promised.places.at({table.nodes[claim.node].name, claim.uid}));
        EXPECT_EQ(decision.lower[i].count(), lower[i].count()) << claim.uid;
    }
    return lower;
}

// Bytes of each claim that make a job faster; with objective Cost, all bytes that a job reads.
ClaimBytes useful_bytes(const ClaimTable& table) {
    ClaimBytes result;
    for (const Claim& claim : table.claims) {
        Bytes useful{};
        for (const ClaimUser& user : claim.users) {
            const Demand& job = *table.jobs[user.job].demand;
            const bool counts =
                !job.rates->compute_bound || table.pool.objective == Objective::kCost;
            useful = std::max(useful, counts ? user.wanted : Bytes::zero());
        }
        result.push_back(useful);
    }
    return result;
}

// Expects that every account gets at least its owed bytes; if the nodes cannot hold those of all
// accounts, up to 1/64 of its quota fewer.
void expect_owed(const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
    OwedWorld world;
    for (const Bytes room : nominal_rooms(table, lower).nodes) {
        world.rooms.push_back(static_cast<double>(room.count()));
    }
    const std::vector<Bytes> taken = account_uses(table, lower);
    for (std::size_t i = 0; i < table.accounts.size(); ++i) {
        world.namespaces.push_back(
            {static_cast<double>(table.accounts[i].quota.nominal.count()),
             static_cast<double>(taken[i].count()),
             std::vector<double>(table.nodes.size(), 0)});
    }
    const ClaimBytes useful = useful_bytes(table);
    for (std::size_t i = 0; i < useful.size(); ++i) {
        const Claim& claim = table.claims[i];
        world.namespaces[claim.account].wants[claim.node] +=
            static_cast<double>((useful[i] - lower[i]).count());
    }
    const OwedOracle oracle{world};
    const std::vector<Bytes> has = account_uses(table, decision.guaranteed);
    for (std::size_t i = 0; i < oracle.owed().size(); ++i) {
        const double part = static_cast<double>(table.accounts[i].quota.nominal.count()) / 64;
        const double slack = oracle.is_contended() ? 1 + part : 1e-3;
        EXPECT_GE(static_cast<double>((has[i] - taken[i]).count()), oracle.owed()[i] - slack)
            << table.accounts[i].quota.ns;
    }
}

void for_random_clusters(const Shape& shape, const Check& check) {
    const std::uint64_t seed = test_seed();
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        const AllocationView view = random_view(seed + static_cast<std::uint64_t>(round), shape);
        for (const auto& [pool, table] : make_claim_tables(view)) {
            const PoolDecision decision = decide_pool(table);
            expect_feasible(table, decision);
            expect_fair_bandwidth(table, decision);
            const ClaimBytes lower = expect_minimums(view, table, decision);
            expect_owed(table, decision, lower);
            check(table, decision, lower);
        }
    }
}

// The brute force leaves each minimum on its node. A plan that moves minimums to other nodes may be
// better than `best`; expect_feasible() checks that it stays within the limits.
void expect_best(double planned, double best) {
    EXPECT_GE(planned, 0.99 * best - 1e-9);
}

using Worth = std::function<double(const ClaimTable&, const ClaimBytes&, bool fair)>;

// Checks both steps of decide_pool(): it divides the guaranteed bytes, then all remaining bytes.
Check is_best(Worth worth) {
    return [=](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
        Rooms rooms = nominal_rooms(table, lower);
        rooms.accounts = decision.owed;
        BruteForce own{table, lower, useful_bytes(table), rooms, decision.owed};
        expect_best(
            worth(table, decision.guaranteed, false),
            own.best([&](const ClaimBytes& amounts) { return worth(table, amounts, false); }));
        ClaimBytes limits;
        for (const Claim& claim : table.claims) {
            limits.push_back(claim.limit);
        }
        BruteForce all{
            table,
            decision.guaranteed,
            limits,
            borrowing_rooms(table, decision.guaranteed),
            std::vector<Bytes>(table.accounts.size())};
        expect_best(worth(table, decision.target, true), all.best([&](const ClaimBytes& amounts) {
            return worth(table, amounts, true);
        }));
    };
}

TEST(DecidePool, MaximizesSavingsWithinQuotas) {
    for_random_clusters({}, is_best(total_worth));
}

TEST(DecidePool, MaximizesSavingsOfBorrowedBytes) {
    Shape shape;
    shape.borrowing = true;
    for_random_clusters(shape, is_best(total_worth));
}

TEST(DecidePool, MaximizesSavingsWithSharedDatasets) {
    Shape shape;
    shape.borrowing = true;
    shape.sharing_across_namespaces = true;
    for_random_clusters(shape, is_best(total_worth));
}

TEST(DecidePool, MaximizesSavedMoney) {
    Shape shape;
    shape.borrowing = true;
    shape.objective = Objective::kCost;
    for_random_clusters(shape, is_best(total_saved_money));
}

TEST(DecidePool, MaximizesSpeedOfTheSlowestJob) {
    Shape shape;
    shape.objective = Objective::kMaxMin;
    for_random_clusters(shape, is_best(slowest));
}

TEST(DecidePool, MaximizesSpeedOfTheSlowestJobWithBorrowedBytes) {
    Shape shape;
    shape.objective = Objective::kMaxMin;
    shape.borrowing = true;
    for_random_clusters(shape, is_best(slowest));
}

}  // namespace
}  // namespace stoker::control
