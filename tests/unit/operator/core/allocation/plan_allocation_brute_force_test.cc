// plan_allocation() against every possible division of small clusters: at most 4 jobs, 3 nodes, 3
// namespaces. What a division is worth is written down here once more, from the formulas, and where
// divisions begin (the guaranteed minimums) comes from tests/support/promised_minimums.h.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/plan_allocation_state.h"
#include "tests/support/promised_minimums.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kRounds = 10'000;
constexpr const char* kPool = "p";
constexpr double kGib = 1024.0 * 1024 * 1024;

struct Shape {
    bool borrowing = false;
    bool sharing_across_namespaces = false;
    std::uint64_t unit = 1;  // all sizes are multiples of it
    Objective objective = Objective::kThroughput;
};

Demand random_job(Prng& prng, std::uint64_t number, std::uint64_t nodes, const Shape& shape) {
    Demand job;
    const std::string ns = "ns" + std::to_string(prng.below(3));
    job.job = {ns, "job" + std::to_string(number)};
    job.pool = kPool;
    const std::uint64_t file = prng.below(6);
    // Sizes follow from names, so that sharers agree.
    DemandDataset dataset;
    dataset.name = "train";
    dataset.uid = (shape.sharing_across_namespaces ? "" : ns + "-") + std::to_string(file);
    dataset.total = Bytes{1 + file} * shape.unit;
    if (prng.below(3) == 0) {
        dataset.access.kind = AccessKind::kImportance;
        dataset.access.beta = 2 * prng.unit();
    }
    dataset.sample_bytes = static_cast<double>(file);
    job.datasets = {dataset};
    for (std::uint64_t node = 0; node < nodes; ++node) {
        if (prng.below(3) != 0) {
            job.nodes.push_back("n" + std::to_string(node));
        }
    }
    JobRates rates;
    rates.ingest = 1 + 99 * prng.unit();
    rates.origin = prng.below(2) == 0 ? rates.ingest * prng.unit() : 0;
    rates.compute_bound = prng.below(8) == 0;
    job.rates = rates;
    job.weight = prng.below(4) == 0 ? 3 : 1;
    job.min_bytes = Bytes{prng.below(6) == 0 ? prng.below(4) : 0} * shape.unit * job.nodes.size();
    if (prng.below(5) == 0) {
        job.max_bytes = Bytes{1 + prng.below(4)} * shape.unit * job.nodes.size();
    }
    return job;
}

AllocationView random_view(std::uint64_t seed, const Shape& shape) {
    Prng prng{seed};
    AllocationView view;
    const std::uint64_t nodes = 1 + prng.below(3);
    for (std::uint64_t node = 0; node < nodes; ++node) {
        view.nodes.push_back(
            {kPool, "n" + std::to_string(node), Bytes{prng.below(6)} * shape.unit});
    }
    for (std::uint64_t ns = 0; ns < 3; ++ns) {
        if (prng.below(3) != 0) {
            QuotaView quota{"ns" + std::to_string(ns), kPool, Bytes{prng.below(9)} * shape.unit};
            if (shape.borrowing) {
                quota.borrowing = Bytes{prng.below(6)} * shape.unit;
                quota.lending = Bytes{prng.below(9)} * shape.unit;
                quota.weight = prng.below(3) == 0 ? 2 : 1;
            }
            view.quotas.push_back(quota);
        }
    }
    const std::uint64_t jobs = 1 + prng.below(4);
    for (std::uint64_t job = 0; job < jobs; ++job) {
        view.demands.push_back(random_job(prng, job, nodes, shape));
    }
    PoolView pool;
    pool.pool = kPool;
    pool.objective = shape.objective;
    pool.origin_bytes_per_second = prng.below(2) == 0 ? static_cast<double>(prng.below(300)) : 0;
    pool.price_per_gib = kGib * static_cast<double>(1 + prng.below(3));
    pool.price_per_request = prng.below(2) == 0 ? 4 * prng.unit() : 0;
    view.pools = {pool};
    return view;
}

double miss(const DemandDataset& dataset, std::uint64_t cached) {
    const double left =
        1 - static_cast<double>(cached) / static_cast<double>(dataset.total->count());
    return dataset.access.kind == AccessKind::kImportance
               ? std::pow(std::max(left, 0.0), 1 + dataset.access.beta)
               : std::max(left, 0.0);
}

// What the claim's bytes save for one job.
double worth(const Demand& job, std::uint64_t cached, double ns_weight) {
    if (job.rates->compute_bound) {
        return 0;
    }
    const double share = std::min(1.0, job.rates->origin / job.rates->ingest);
    const double missed = std::max(miss(job.datasets[0], cached), share);
    return ns_weight * job.weight * job.rates->ingest / static_cast<double>(job.nodes.size()) *
           (1 - missed);
}

// What they save of the bill, whoever waits.
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

// Every division with lower <= amounts <= limits within nodes and quotas.
class BruteForce {
public:
    using Judge = std::function<double(const ClaimBytes&)>;

    BruteForce(const ClaimTable& table, ClaimBytes lower, Rooms rooms, std::uint64_t unit = 1)
        : table_(table),
          unit_(unit),
          amounts_(lower),
          lower_(std::move(lower)),
          rooms_(std::move(rooms)) {}

    double best(const Judge& judge) {
        best_ = -1;
        visit(0, judge);
        return best_;
    }

private:
    void visit(std::size_t index, const Judge& judge) {
        if (index == table_.claims.size()) {
            best_ = std::max(best_, judge(amounts_));
            return;
        }
        const Claim& claim = table_.claims[index];
        const Rooms before = rooms_;
        for (Bytes more{}; lower_[index] + more <= std::max(claim.limit, lower_[index]);
             more += Bytes{unit_}) {
            rooms_ = before;
            if (!take(claim, more, lower_[index])) {
                break;
            }
            amounts_[index] = lower_[index] + more;
            visit(index + 1, judge);
        }
        amounts_[index] = lower_[index];
        rooms_ = before;
    }

    bool take(const Claim& claim, Bytes more, Bytes lower) {
        const auto fits = [](std::uint64_t& room, std::uint64_t bytes) {
            const bool fit = bytes <= room;
            room -= fit ? bytes : 0;
            return fit;
        };
        bool fit = fits(rooms_.nodes[claim.node], more.count());
        for (const std::uint32_t account : claim.accounts) {
            const Bytes cost = charge(claim, lower + more) - charge(claim, lower);
            fit = fit && fits(rooms_.accounts[account], cost.count());
        }
        return fit && (claim.accounts.empty() || fits(rooms_.common, more.count()));
    }

    const ClaimTable& table_;
    std::uint64_t unit_;
    ClaimBytes amounts_;
    ClaimBytes lower_;
    Rooms rooms_;
    double best_ = -1;
};

double total_worth(const ClaimTable& table, const ClaimBytes& amounts, bool fair) {
    double sum = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        for (const ClaimUser& user : table.claims[i].users) {
            const PlannedJob& job = table.jobs[user.job];
            sum += worth(*job.demand, amounts[i].count(), fair ? job.fair_weight : 1);
        }
    }
    return sum;
}

double total_saved_money(const ClaimTable& table, const ClaimBytes& amounts) {
    double sum = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        for (const ClaimUser& user : table.claims[i].users) {
            sum += saved_money(*table.jobs[user.job].demand, table.pool, amounts[i].count());
        }
    }
    return sum;
}

// Bytes beyond a job's own maxBytes, there because of another job, do not count for it.
double slowest(const ClaimTable& table, const ClaimBytes& amounts) {
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
        for (const std::uint32_t account : claim.accounts) {
            accounts[account] += (decision.target[i].count() + claim.parts - 1) / claim.parts;
        }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        EXPECT_LE(nodes[i], table.nodes[i].capacity.count());
    }
    std::uint64_t borrowed = 0;
    std::uint64_t lendable = 0;
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        const QuotaView& quota = table.accounts[i].quota;
        const std::uint64_t nominal = quota.nominal.count();
        EXPECT_LE(accounts[i], nominal + quota.borrowing.count()) << quota.ns;
        borrowed += accounts[i] > nominal ? accounts[i] - nominal : 0;
        lendable +=
            accounts[i] < nominal ? std::min(quota.lending.count(), nominal - accounts[i]) : 0;
    }
    EXPECT_LE(borrowed, lendable);
}

// Max-min of the origin's bandwidth over what the jobs miss under the plan, to a few bytes a
// second: the planner counts whole ones.
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
        // Who gets all that it needs may have more.
        if (needs[job] > share + kRounding) {
            EXPECT_LE(decision.job_origin[job], share + kRounding);
        }
    }
}

// The promised minimums, in the planner's order of claims. It must have found the same, but where
// namespaces share datasets: there its own count.
ClaimBytes expect_minimums(
    const AllocationView& view,
    const ClaimTable& table,
    const PoolDecision& decision,
    const Shape& shape) {
    if (shape.sharing_across_namespaces) {
        return decision.lower;
    }
    const PromisedMinimums promised = promised_minimums(view);
    ClaimBytes lower;
    for (std::size_t i = 0; i < table.claims.size(); ++i) {
        const Claim& claim = table.claims[i];
        lower.emplace_back(promised.places.at({table.nodes[claim.node].name, claim.uid}));
        EXPECT_EQ(decision.lower[i].count(), lower[i].count()) << claim.uid;
    }
    return lower;
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
            check(table, decision, expect_minimums(view, table, decision, shape));
        }
    }
}

// Better than every division of whole units it can be where it moves minimums between the nodes of
// a job; expect_feasible() sees that it does not cheat.
void expect_best(double planned, double best) {
    EXPECT_GE(planned, 0.99 * best - 1e-9);
}

// Both steps: what is best within the nominal quotas, and then with borrowed bytes.
Check borrows_best() {
    return [](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
        BruteForce own{table, lower, nominal_rooms(table, lower)};
        expect_best(
            total_worth(table, decision.within, false), own.best([&](const ClaimBytes& amounts) {
                return total_worth(table, amounts, false);
            }));
        BruteForce with_borrowed{table, decision.within, borrowing_rooms(table, decision.within)};
        expect_best(
            total_worth(table, decision.target, true),
            with_borrowed.best(
                [&](const ClaimBytes& amounts) { return total_worth(table, amounts, true); }));
    };
}

// Divides into the parts of 2 or 3 namespaces; a byte more or less is nothing.
constexpr std::uint64_t kSharedUnit = 6'000;

TEST(PlanAllocationBruteForce, SavesTheMostWithinTheQuotas) {
    for_random_clusters(
        {}, [](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
            BruteForce all{table, lower, nominal_rooms(table, lower)};
            const double best = all.best(
                [&](const ClaimBytes& amounts) { return total_worth(table, amounts, false); });
            expect_best(total_worth(table, decision.target, false), best);
        });
}

TEST(PlanAllocationBruteForce, BorrowsWhatSavesTheMost) {
    Shape shape;
    shape.borrowing = true;
    for_random_clusters(shape, borrows_best());
}

// A dataset that several namespaces pay for is no flow: here a linear program finds what the search
// misses.
TEST(PlanAllocationBruteForce, SavesTheMostWhereNamespacesShareDatasets) {
    Shape shape;
    shape.sharing_across_namespaces = true;
    shape.unit = kSharedUnit;
    for_random_clusters(
        shape, [&](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
            BruteForce all{table, lower, nominal_rooms(table, lower), shape.unit};
            const double best = all.best(
                [&](const ClaimBytes& amounts) { return total_worth(table, amounts, false); });
            // The planner may divide a unit, and so be better.
            expect_best(total_worth(table, decision.target, false), best);
        });
}

// Borrowed bytes of datasets that several namespaces pay for: no better than a search finds them,
// but never worse than without, and everything in its limits.
TEST(PlanAllocationBruteForce, LosesNothingByBorrowingWhereNamespacesShareDatasets) {
    Shape shape;
    shape.borrowing = true;
    shape.sharing_across_namespaces = true;
    shape.unit = kSharedUnit;
    for_random_clusters(
        shape, [&](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
            BruteForce own{table, lower, nominal_rooms(table, lower), shape.unit};
            const double best = own.best(
                [&](const ClaimBytes& amounts) { return total_worth(table, amounts, false); });
            expect_best(total_worth(table, decision.within, false), best);
            expect_best(
                total_worth(table, decision.target, true),
                total_worth(table, decision.within, true));
        });
}

TEST(PlanAllocationBruteForce, SavesTheMostMoney) {
    Shape shape;
    shape.objective = Objective::kCost;
    for_random_clusters(
        shape, [](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
            BruteForce all{table, lower, nominal_rooms(table, lower)};
            const double best = all.best(
                [&](const ClaimBytes& amounts) { return total_saved_money(table, amounts); });
            expect_best(total_saved_money(table, decision.target), best);
        });
}

TEST(PlanAllocationBruteForce, MakesTheSlowestJobAsFastAsCanBe) {
    Shape shape;
    shape.objective = Objective::kMaxMin;
    for_random_clusters(
        shape, [](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
            BruteForce all{table, lower, nominal_rooms(table, lower)};
            const double best =
                all.best([&](const ClaimBytes& amounts) { return slowest(table, amounts); });
            EXPECT_GE(slowest(table, decision.target), best - 1e-9);
        });
}

TEST(PlanAllocationBruteForce, MakesTheSlowestJobAsFastAsCanBeWithBorrowedBytes) {
    Shape shape;
    shape.objective = Objective::kMaxMin;
    shape.borrowing = true;
    for_random_clusters(
        shape, [](const ClaimTable& table, const PoolDecision& decision, const ClaimBytes& lower) {
            BruteForce own{table, lower, nominal_rooms(table, lower)};
            EXPECT_GE(slowest(table, decision.within), own.best([&](const ClaimBytes& amounts) {
                return slowest(table, amounts);
            }) - 1e-9);
            BruteForce all{table, decision.within, borrowing_rooms(table, decision.within)};
            const double best =
                all.best([&](const ClaimBytes& amounts) { return slowest(table, amounts); });
            EXPECT_GE(slowest(table, decision.target), best - 1e-9);
        });
}

}  // namespace
}  // namespace stoker::control
