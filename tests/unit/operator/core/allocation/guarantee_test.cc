// No namespace gets fewer bytes than a pool's nominal quotas owe it, for any placement of its jobs
// and any earlier grants (tests/support/owed_bytes.h computes the owed bytes).
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/allocation/what_if.h"
#include "tests/support/owed_bytes.h"
#include "tests/support/promised_minimums.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kWorlds = 10'000;
constexpr const char* kPool = "p";
constexpr std::uint64_t kNamespaces = 4;
constexpr double kLevel = 1.0 / 64;  // tolerance, in quotas, if nodes cannot hold all owed bytes

std::string name(const char* prefix, std::uint64_t number) {
    return prefix + std::to_string(number);
}

// The dataset's uid contains its namespace and determines its size.
Demand random_job(Prng& prng, std::uint64_t number, std::uint64_t nodes) {
    Demand job;
    job.job = {name("ns", prng.below(kNamespaces)), name("job", number)};
    job.created_at = WallTime{std::chrono::seconds{prng.below(3)}};
    job.pool = kPool;
    const std::uint64_t file = prng.below(3);
    const bool is_guest = prng.below(3) == 0;
    const std::string owner = is_guest ? name("ns", prng.below(kNamespaces)) : job.job.ns;
    job.datasets = {{"train", owner + name("d", file), Bytes{400 + 300 * file}}};
    job.datasets[0].ns = owner;
    for (std::uint64_t node = 0; node < nodes; ++node) {
        if (prng.below(2) == 0) {
            job.nodes.push_back(name("n", node));
        }
    }
    job.rates = JobRates{1 + 99 * prng.unit(), 0, 1, prng.below(8) == 0};
    job.weight = static_cast<double>(1 + prng.below(3));
    job.priority = static_cast<std::int32_t>(prng.below(2));
    job.min_bytes = Bytes{prng.below(4) == 0 ? prng.below(900) : 0};
    if (prng.below(6) == 0) {
        job.fill = true;
        job.min_bytes = Bytes::zero();
    }
    return job;
}

AllocationView random_view(Prng& prng) {
    AllocationView view;
    const std::uint64_t nodes = 1 + prng.below(4);
    for (std::uint64_t node = 0; node < nodes; ++node) {
        view.nodes.push_back({kPool, name("n", node), Bytes{200 + prng.below(1000)}});
    }
    PoolView pool;
    pool.pool = kPool;
    pool.objective = static_cast<Objective>(prng.below(4));
    const auto limit = [&prng] {
        return prng.below(2) == 0 ? Bytes::unlimited() : Bytes{prng.below(900)};
    };
    if (prng.below(3) == 0) {
        pool.default_quota = {Bytes{prng.below(500)}, limit(), limit()};
    }
    view.pools = {pool};
    for (std::uint64_t ns = 0; ns < kNamespaces; ++ns) {
        if (prng.below(3) != 0) {
            QuotaView quota{name("ns", ns), kPool, Bytes{prng.below(1500)}};
            quota.borrowing = limit();
            quota.lending = limit();
            view.quotas.push_back(quota);
        }
    }
    for (std::uint64_t job = 0; job < 1 + prng.below(7); ++job) {
        view.demands.push_back(random_job(prng, job, nodes));
    }
    return view;
}

double nominal_of(const AllocationView& view, const std::string& ns) {
    const auto quota = std::ranges::find(view.quotas, ns, &QuotaView::ns);
    const Bytes nominal =
        quota == view.quotas.end() ? view.pools[0].default_quota.nominal : quota->nominal;
    return static_cast<double>(nominal.count());
}

// Bytes that make a job faster; for Cost and Even, all bytes that it reads. A fill is owed none.
double useful(const AllocationView& view, const Demand& job) {
    const bool all =
        view.pools[0].objective == Objective::kCost || view.pools[0].objective == Objective::kEven;
    return job.fill || (job.rates->compute_bound && !all)
               ? 0
               : static_cast<double>(job.datasets[0].total->count());
}

OwedWorld world_of(const AllocationView& view, const PromisedMinimums& minimums) {
    OwedWorld world;
    std::map<std::string, std::size_t> nodes;
    for (const PoolNode& node : view.nodes) {
        nodes[node.node] = world.rooms.size();
        world.rooms.push_back(static_cast<double>(node.capacity.count()));
    }
    std::map<PromisedMinimums::Place, double> wants;
    for (const Demand& job : view.demands) {
        for (const std::string& node : job.nodes) {
            double& want = wants[{node, job.datasets[0].uid}];
            want = std::max(want, useful(view, job));
        }
    }
    for (std::uint64_t ns = 0; ns < kNamespaces; ++ns) {
        world.namespaces.push_back(
            {nominal_of(view, name("ns", ns)), 0, std::vector<double>(nodes.size(), 0)});
    }
    for (const auto& [place, want] : wants) {
        const auto promised = minimums.places.find(place);
        const double minimum =
            promised == minimums.places.end() ? 0 : static_cast<double>(promised->second);
        OwedWorld::Namespace& owner = world.namespaces[place.second[2] - '0'];
        owner.taken += minimum;
        owner.wants[nodes.at(place.first)] += std::max(0.0, want - minimum);
        world.rooms[nodes.at(place.first)] -= minimum;
    }
    return world;
}

void expect_owed(const AllocationView& view, const AllocationPlan& plan) {
    const PromisedMinimums minimums = promised_minimums(view);
    const OwedWorld world = world_of(view, minimums);
    const OwedOracle oracle{world};
    std::vector<double> has(kNamespaces, 0);
    for (const Grant& grant : plan.grants) {
        has[grant.dataset_uid[2] - '0'] += static_cast<double>(grant.resident_bytes.count());
    }
    for (std::uint64_t ns = 0; ns < kNamespaces; ++ns) {
        const OwedWorld::Namespace& it = world.namespaces[ns];
        const double slack = oracle.is_contended() ? it.nominal * kLevel + 1 : 0.01;
        EXPECT_GE(has[ns], it.taken + oracle.owed()[ns] - slack) << name("ns", ns);
    }
    for (const JobAllocation& job : plan.jobs) {
        const auto promised = minimums.jobs.find(job.job);
        const std::uint64_t bytes = promised == minimums.jobs.end() ? 0 : promised->second;
        EXPECT_EQ(job.guaranteed.count(), bytes) << to_string(job.job);
    }
}

// Repeats settle(), which ends after kSettleRoundsMax plans, until a plan moves no bytes: each plan
// moves only a few bytes between claims of equal value.
Outcome bring_to_rest(const AllocationView& view) {
    Outcome outcome = settle(view);
    for (int i = 0; i < 60 && !outcome.at_rest; ++i) {
        outcome = settle(std::move(outcome.view));
    }
    EXPECT_TRUE(outcome.at_rest);
    return outcome;
}

// Starts from an empty pool, and from a pool that some of the jobs used alone.
TEST(PlanAllocationGuarantee, NoNamespaceSettlesBelowItsOwedBytes) {
    const std::uint64_t seed = test_seed();
    int contended = 0;
    for (int round = 0; round < kWorlds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        Prng prng{seed + static_cast<std::uint64_t>(round)};
        AllocationView view = random_view(prng);
        if (prng.below(2) == 0) {
            const std::vector<Demand> all = view.demands;
            view.demands.resize(prng.below(all.size() + 1));
            view = settle(std::move(view)).view;
            view.demands = all;
        }
        expect_owed(view, bring_to_rest(view).plan);
        contended += OwedOracle{world_of(view, promised_minimums(view))}.is_contended() ? 1 : 0;
    }
    EXPECT_GT(contended, kWorlds / 100);
    EXPECT_LT(contended, kWorlds / 2);
}

}  // namespace
}  // namespace stoker::control
