// The planner counts the caches of nodes that fetch samples of a dataset from each other as one
// cache ("pooled"): docs/design/allocation.md.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/allocation/what_if.h"
#include "tests/unit/operator/core/allocation/planned_cluster.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

Demand job_on(int number, std::vector<std::string> nodes, const std::string& uid, double ingest) {
    return waiting(demand(number, std::move(nodes), {dataset(uid, gib(100))}), ingest);
}

TEST(PlanPeers, NodeWantsRoomOnlyForTheSamplesThatItOwns) {
    AllocationView cluster = view(gib(200), {job_on(1, {"n1", "n2"}, "d", 1e6)});
    EXPECT_EQ(plan_allocation(cluster).granted_in_pool.at(kPool), gib(200));
    cluster.peers = {{"d", {"n1", "n2"}}};
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(50));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(50));
    EXPECT_EQ(allocation(plan, "job1").reason, AllocationReason::kGranted);
}

// The hash gives some nodes more than an even share of a small dataset.
TEST(PlanPeers, WantsRoomForAnUnevenShare) {
    AllocationView cluster = view(gib(200), {job_on(1, {"n1", "n2"}, "d", 1e6)});
    cluster.demands[0].datasets[0].sample_bytes = 1 << 20;
    cluster.peers = {{"d", {"n1", "n2"}}};
    // Each node owns 51,200 samples of 1 MiB on average. The planner adds four standard deviations:
    // 4 sqrt(2 x 51,200) = 1,280 samples.
    EXPECT_NEAR(to_gib(granted(plan_allocation(cluster), "n1", "d")), 51.25, .1);
    cluster.demands[0].datasets[0].sample_bytes = static_cast<double>(gib(10).count());
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(100)) << "10 samples";
}

TEST(PlanPeers, GroupOfOneNodeChangesNothing) {
    AllocationView cluster = view(gib(200), {job_on(1, {"n1", "n2"}, "d", 1e6)});
    const AllocationPlan before = plan_allocation(cluster);
    cluster.peers = {{"d", {"n1"}}, {"other", {"n1", "n2"}}};
    EXPECT_EQ(plan_allocation(cluster), before);
}

// A byte of the pooled dataset saves the reads of both nodes, so it is worth twice as much as one that
// only its own node reads.
TEST(PlanPeers, ByteSavesTheReadsOfAllNodes) {
    const std::vector<Demand> jobs{
        job_on(1, {"n1", "n2"}, "d", 3e6),  // 1.5e6 on each node
        job_on(2, {"n1"}, "e", 2e6),
        job_on(3, {"n2"}, "f", 2e6)};
    AllocationView cluster = view(gib(50), jobs);
    AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), Bytes::zero());
    cluster.peers = {{"d", {"n1", "n2"}}};
    plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(50));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(50));
}

TEST(PlanPeers, PredictedRateCountsThePooledBytes) {
    Demand job = job_on(1, {"n1", "n2"}, "d", 1e9);
    job.rates->origin = 1e8;
    AllocationView cluster = view(gib(30), {job});
    cluster.peers = {{"d", {"n1", "n2"}}};
    // The two nodes together cache 60 of 100 GiB: the origin serves 0.4 of the reads.
    EXPECT_NEAR(allocation(plan_allocation(cluster), "job1").numbers.rate, 1e8 / .4, 1e6);
}

// Another GiB on either node saves a hundredth of the reads of both.
TEST(PlanPeers, MarginalBenefitCountsTheReadsOfAllNodes) {
    AllocationView cluster = view(gib(30), {job_on(1, {"n1", "n2"}, "d", 1e9)});
    cluster.peers = {{"d", {"n1", "n2"}}};
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_NEAR(allocation(plan, "job1").numbers.marginal_per_gib, 1e7, 1e3);
}

// The job on n2 is compute-bound; n2 still caches its share of the dataset for the job on n1.
TEST(PlanPeers, NodeKeepsItsShareForJobsOnOtherNodes) {
    Demand busy = job_on(2, {"n2"}, "d", 1e6);
    busy.rates->compute_bound = true;
    AllocationView cluster = view(gib(200), {job_on(1, {"n1"}, "d", 1e6), busy});
    EXPECT_EQ(granted(plan_allocation(cluster), "n2", "d"), Bytes::zero());
    cluster.peers = {{"d", {"n1", "n2"}}};
    const AllocationPlan plan = plan_allocation(cluster);
    EXPECT_EQ(granted(plan, "n1", "d"), gib(50));
    EXPECT_EQ(granted(plan, "n2", "d"), gib(50));
    EXPECT_EQ(allocation(plan, "job1").datasets.at(0), gib(50)) << "bytes of its own sidecars only";
    EXPECT_EQ(allocation(plan, "job1").granted, gib(50));
    EXPECT_EQ(allocation(plan, "job2").granted, Bytes::zero());
}

TEST(PlanPeers, OriginLimitGoesToTheOwners) {
    Demand idle = job_on(2, {"n2"}, "d", 1e6);
    idle.rates->compute_bound = true;
    AllocationView cluster = view(gib(200), {job_on(1, {"n1"}, "d", 8e6), idle});
    cluster.pools = {{kPool}};
    cluster.pools[0].origin_bytes_per_second = 4e6;
    cluster.peers = {{"d", {"n1", "n2"}}};
    std::vector<std::uint64_t> limits;
    for (const Grant& grant : plan_allocation(cluster).grants) {
        limits.push_back(grant.origin_bytes_per_second);
    }
    ASSERT_EQ(limits.size(), 2U);
    EXPECT_NEAR(static_cast<double>(limits[0]), static_cast<double>(limits[1]), 2);
    EXPECT_NEAR(static_cast<double>(limits[0] + limits[1]), 4e6, 8);
}

TEST(PlanPeers, NodeKeepsCopiesIfAnOwnerIsTooSmall) {
    AllocationView cluster = view(gib(200), {job_on(1, {"n1", "n2"}, "d", 1e6)});
    cluster.peers = {{"d", {"n1", "n2"}}};
    for (const auto& [small, large] : {std::pair{0, 1}, std::pair{1, 0}}) {
        cluster.nodes[small].capacity = gib(10);
        cluster.nodes[large].capacity = gib(200);
        const AllocationPlan plan = plan_allocation(cluster);
        EXPECT_EQ(granted(plan, cluster.nodes[large].node, "d"), gib(100));
        EXPECT_EQ(granted(plan, cluster.nodes[small].node, "d"), gib(10));
    }
}

TEST(PlanPeers, CopiesStayUntilAnotherJobNeedsTheirRoom) {
    AllocationView cluster = view(gib(100), {job_on(1, {"n1", "n2"}, "d", 1e6)});
    for (const std::string node : {"n1", "n2"}) {
        cluster.holdings.push_back({kPool, node, "d", gib(100), gib(100), gib(100)});
    }
    cluster.peers = {{"d", {"n1", "n2"}}};
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(100));
    cluster.demands.push_back(job_on(2, {"n1"}, "e", 1e3));
    EXPECT_EQ(granted(plan_allocation(cluster), "n1", "d"), gib(50)) << "e needs the other half";
}

TEST(PlanPeers, QuotaIsDividedEvenly) {
    AllocationView cluster = view(gib(200), {job_on(1, {"n1", "n2", "n3"}, "d", 1e6)});
    cluster.nodes.push_back({kPool, "n3", gib(200)});
    cluster.quotas = {{"a", kPool, gib(60)}};
    cluster.peers = {{"d", {"n1", "n2", "n3"}}};
    const AllocationPlan plan = plan_allocation(cluster);
    for (const std::string node : {"n1", "n2", "n3"}) {
        EXPECT_NEAR(to_gib(granted(plan, node, "d")), 20, .1) << node;
    }
}

// Bytes/s from the origin by the rules of docs/design/peers.md, for exact jobs: owners keep their own
// samples first; in the rest of its grant a node keeps copies of others' samples.
double origin_rate(const AllocationView& cluster, const std::map<std::string, double>& cached) {
    double result = 0;
    for (const Demand& job : cluster.demands) {
        const std::string& uid = job.datasets[0].uid;
        const auto size = static_cast<double>(job.datasets[0].total->count());
        const double on_node = job.rates->ingest / static_cast<double>(job.nodes.size());
        const auto group = std::ranges::find(cluster.peers, uid, &PeerNodes::dataset_uid);
        for (const std::string& node : job.nodes) {
            const double here = cached.at(node + uid);
            if (group == cluster.peers.end()) {
                result += on_node * (1 - std::min(1.0, here / size));
                continue;
            }
            const auto owners = static_cast<double>(group->nodes.size());
            const double part = size / owners;
            const double copies = std::clamp((here - part) / (size - part), 0.0, 1.0);
            for (const std::string& owner : group->nodes) {
                const double lacks = 1 - std::min(1.0, cached.at(owner + uid) / part);
                result += on_node / owners * lacks * (owner == node ? 1 : 1 - copies);
            }
        }
    }
    return result;
}

std::map<std::string, double> planned(AllocationView cluster) {
    std::map<std::string, double> result;
    for (const Grant& grant : settle(std::move(cluster)).plan.grants) {
        result[grant.node + grant.dataset_uid] = static_cast<double>(grant.resident_bytes.count());
    }
    return result;
}

// 2 to 8 nodes of different sizes, jobs on random ones, and a group for most datasets that several
// nodes read.
AllocationView random_cluster(Prng& prng) {
    AllocationView result;
    const std::uint64_t nodes = 2 + prng.below(7);
    for (std::uint64_t i = 0; i < nodes; ++i) {
        result.nodes.push_back({kPool, "n" + std::to_string(i), gib(prng.below(200))});
    }
    std::map<std::string, std::map<std::string, bool>> readers;
    for (int job = 0; job < 5; ++job) {
        const std::string uid = "d" + std::to_string(prng.below(4));
        std::vector<std::string> on;
        for (std::uint64_t i = 0; i < nodes; ++i) {
            if (prng.below(2) == 0) {
                on.push_back("n" + std::to_string(i));
                readers[uid][on.back()] = true;
            }
        }
        if (!on.empty()) {
            result.demands.push_back(job_on(job, on, uid, 1e6 * std::exp2(3 * prng.unit())));
        }
    }
    for (const auto& [uid, on] : readers) {
        if (on.size() > 1 && prng.below(4) > 0) {
            result.peers.push_back({uid, {}});
            for (const auto& entry : on) {
                result.peers.back().nodes.push_back(entry.first);
            }
        }
    }
    return result;
}

TEST(PlanPeers, TakesLessFromTheOriginThanAPlanThatIgnoresPeers) {
    const std::uint64_t seed = test_seed();
    int worse = 0;
    double worst = 0;  // largest loss, as a share of the reads
    double pooled_sum = 0;
    double alone_sum = 0;
    for (std::uint64_t round = 0; round < 300; ++round) {
        Prng prng{seed + round};
        const AllocationView cluster = random_cluster(prng);
        AllocationView without = cluster;
        without.peers.clear();
        const double pooled = origin_rate(cluster, planned(cluster));
        const double alone = origin_rate(cluster, planned(without));
        double reads = 0;
        for (const Demand& job : cluster.demands) {
            reads += job.rates->ingest;
        }
        worse += pooled > alone + .01 * reads ? 1 : 0;
        worst = std::max(worst, (pooled - alone) / reads);
        pooled_sum += pooled;
        alone_sum += alone;
    }
    fmt::print(
        "origin with pools: {:.3f} of the plan without; {} of 300 worse, by up to {:.3f}\n",
        pooled_sum / alone_sum,
        worse,
        worst);
    EXPECT_LT(pooled_sum, .85 * alone_sum);
    EXPECT_LE(worse, 36) << "known limit: docs/design/allocation.md";
    EXPECT_LE(worst, .25);
}

TEST(PlanPeers, EqualGrantsTakeTheLeastFromTheOrigin) {
    Prng prng{test_seed()};
    for (int round = 0; round < 200; ++round) {
        const std::uint64_t count = 2 + prng.below(7);
        AllocationView cluster;
        std::vector<std::string> nodes;
        std::map<std::string, double> unequal;
        std::map<std::string, double> equal;
        double sum = 0;
        const double most =
            1.2 * static_cast<double>(gib(100).count()) / static_cast<double>(count);
        for (std::uint64_t i = 0; i < count; ++i) {
            nodes.push_back("n" + std::to_string(i));
            unequal[nodes.back() + "d"] = most * prng.unit();
            sum += unequal[nodes.back() + "d"];
        }
        for (const std::string& node : nodes) {
            equal[node + "d"] = sum / static_cast<double>(count);
        }
        cluster.demands = {job_on(1, nodes, "d", 1e6)};
        cluster.peers = {{"d", nodes}};
        EXPECT_LE(origin_rate(cluster, equal), origin_rate(cluster, unequal) + 1e-3);
    }
}

TEST(PlanPeers, GrantsStayWithinNodesAndQuotasAndBecomeStable) {
    const std::uint64_t seed = test_seed();
    for (std::uint64_t round = 0; round < 300; ++round) {
        Prng prng{seed + round};
        AllocationView cluster = random_cluster(prng);
        const Bytes quota = gib(prng.below(300));
        cluster.quotas = {{"a", kPool, quota}};
        cluster.quotas[0].borrowing = Bytes::zero();
        const Outcome outcome = settle(cluster);
        EXPECT_TRUE(outcome.at_rest) << "seed " << seed + round;
        std::map<std::string, Bytes> on_node;
        Bytes all{};
        for (const Grant& grant : outcome.plan.grants) {
            on_node[grant.node] += grant.resident_bytes;
            all += grant.resident_bytes;
        }
        for (const PoolNode& node : cluster.nodes) {
            ASSERT_LE(on_node[node.node], node.capacity) << "seed " << seed + round;
        }
        ASSERT_LE(all, quota) << "seed " << seed + round;
    }
}

}  // namespace
}  // namespace stoker::control
