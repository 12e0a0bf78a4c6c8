#include "operator/core/allocation/shared_reads.h"

#include "operator/core/allocation/user_curve.h"
#include "tests/unit/operator/core/allocation/planned_cluster.h"

namespace stoker::control {
namespace {

AllocationView three_nodes(std::vector<Demand> demands) {
    AllocationView result = view(gib(200), std::move(demands));
    result.nodes.push_back({kPool, "n3", gib(200)});
    result.peers = {{"d", {"n1", "n2", "n3"}}};
    return result;
}

Demand job_on(int number, std::vector<std::string> nodes, double ingest) {
    return waiting(demand(number, std::move(nodes), {dataset("d", gib(90))}), ingest);
}

TEST(PoolPeers, GivesEachNodeAnEvenShareOfAllReads) {
    const AllocationView cluster =
        three_nodes({job_on(1, {"n1", "n2", "n3"}, 9e6), job_on(2, {"n2"}, 6e6)});
    const auto tables = make_claim_tables(cluster);
    const ClaimTable& table = tables.at(kPool);
    ASSERT_EQ(table.claims.size(), 3U);
    for (const Claim& claim : table.claims) {
        EXPECT_DOUBLE_EQ(claim.user(0).rate, 3e6);
        EXPECT_DOUBLE_EQ(claim.user(1).rate, 2e6);
        EXPECT_EQ(claim.user(1).remote, table.nodes[claim.node].name != "n2");
        EXPECT_EQ((UserCurve{table.jobs[0], claim.user(0)}.part()), gib(30));
        EXPECT_EQ(claim.limit, gib(30));
    }
    EXPECT_EQ(table.jobs[1].claims.size(), 3U);
}

// The leader of n3 has not joined the group yet, so n3 fetches and caches the dataset for itself.
TEST(PoolPeers, NodeOutsideTheGroupReadsForItself) {
    AllocationView cluster = three_nodes({job_on(1, {"n1", "n2", "n3"}, 9e6)});
    cluster.peers[0].nodes = {"n1", "n2"};
    const auto tables = make_claim_tables(cluster);
    const std::vector<Claim>& claims = tables.at(kPool).claims;
    EXPECT_EQ(claims.at(0).user(0).owners, 2U);
    EXPECT_EQ(claims.at(0).limit, gib(45));
    EXPECT_EQ(claims.at(2).user(0).owners, 1U);
    EXPECT_EQ(claims.at(2).limit, gib(90));
}

// 300 jobs, each on its own node, read one dataset. Planned as a group, each node's share of the
// dataset would have 300 users.
TEST(PoolPeers, AGroupOfTooManyJobsIsPlannedNodeByNode) {
    std::vector<Demand> demands{
        waiting(demand(1000, {"a", "b"}, {dataset("small", gib(90))}), 1e6)};
    PeerNodes large{"d", {}};
    AllocationView cluster = view(gib(200), {});
    cluster.nodes.push_back({kPool, "a", gib(200)});
    cluster.nodes.push_back({kPool, "b", gib(200)});
    for (int i = 0; i < 300; ++i) {
        large.nodes.push_back("m" + std::to_string(i));
        cluster.nodes.push_back({kPool, large.nodes.back(), gib(200)});
        demands.push_back(job_on(i, {large.nodes.back()}, 1e6));
    }
    cluster.demands = std::move(demands);
    cluster.peers = {large, {"small", {"a", "b"}}};
    const auto tables = make_claim_tables(cluster);
    for (const Claim& claim : tables.at(kPool).claims) {
        const std::uint64_t owners = claim.uid == "small" ? 2 : 1;
        EXPECT_EQ(claim.users.front().owners, owners);
        EXPECT_EQ(claim.users.size(), 1U);
    }
}

// A job's minimum applies to its own nodes only.
TEST(PoolPeers, RemoteUserHasNoMinimum) {
    Demand job = job_on(1, {"n1"}, 9e6);
    job.min_bytes = gib(80);
    const AllocationView cluster = three_nodes({job, job_on(2, {"n2", "n3"}, 6e6)});
    const auto tables = make_claim_tables(cluster);
    const std::vector<Claim>& claims = tables.at(kPool).claims;
    EXPECT_EQ(claims.at(0).limit, gib(80));
    EXPECT_EQ(claims.at(1).user(0).minimum, Bytes::zero());
    EXPECT_EQ(claims.at(1).limit, gib(30));
    EXPECT_EQ(claims.at(1).first_user().job, 1U);
}

}  // namespace
}  // namespace stoker::control
