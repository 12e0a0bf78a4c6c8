// Stories of nodes that fetch from each other: docs/adr/0016-peers.md.
#include <algorithm>

#include "sidecar/core/placement.h"
#include "tests/world/scenario.h"

namespace stoker::world {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kSamples = 200;
constexpr std::size_t kNodes = 3;
constexpr Size kThree{.nodes = kNodes, .jobs = 1, .pods = kNodes};      // a rank on each node
constexpr Size kPairs{.nodes = kNodes, .jobs = 1, .pods = 2 * kNodes};  // two ranks on each

class PeerScenario : public Scenario {
protected:
    World& make_peers(Size size, Script script = {}) {
        script.has_peers = true;
        nodes_ = size.nodes;
        script.trainers_wait = seconds{10};
        return make(size, script);
    }

    // Samples that the node's leader got from peers. hedges(): samples that leaders requested from
    // the origin because a peer was slow; failures(): because a peer failed.
    [[nodiscard]] std::uint64_t from_peers(std::size_t node) const {
        return world_->status(node).peer_samples;
    }

    [[nodiscard]] std::uint64_t hedges() const {
        return sum([](const auto& status) { return status.peer_hedges; });
    }

    [[nodiscard]] std::uint64_t failures() const {
        return sum([](const auto& status) { return status.peer_failures; });
    }

    [[nodiscard]] std::uint64_t fetches() const { return world_->count("fetches"); }

    // Samples that the node owns in the newest group.
    [[nodiscard]] std::uint64_t share(std::size_t node) const {
        const auto& members = world_->group().members;
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (members[i].node == World::node_name(node)) {
                return world_->shares()[i];
            }
        }
        return 0;
    }

private:
    template <class Number>
    [[nodiscard]] std::uint64_t sum(Number number) const {
        std::uint64_t total = 0;
        for (std::size_t node = 0; node < nodes_; ++node) {
            total += number(world_->status(node));
        }
        return total;
    }

    std::size_t nodes_ = 0;
};

TEST_F(PeerScenario, OriginIsAskedOnceForEachSample) {
    World& world = make_peers(kThree);
    run_for(minutes{3});
    EXPECT_GT(world.epoch(0), 3U);
    EXPECT_EQ(fetches(), kSamples);
    EXPECT_EQ(hedges() + failures(), 0U);
    for (std::size_t node = 0; node < kNodes; ++node) {
        EXPECT_LE(from_peers(node), kSamples - share(node)) << "the grant has room for all samples";
        EXPECT_GE(from_peers(node), (kSamples - share(node)) * 9 / 10) << "most were in its part";
    }
}

TEST_F(PeerScenario, PoolSmallerThanTheDatasetSavesWhatItHolds) {
    World& world = make_peers(kThree, {.grant = kib(300), .window = kib(256)});
    run_for(minutes{1});
    const std::uint64_t before = fetches();
    const auto epoch = world.epoch(0);
    run_for(minutes{2});
    const std::uint64_t epochs = world.epoch(0) - epoch;
    ASSERT_GT(epochs, 2U);
    EXPECT_LT(fetches() - before, epochs * kSamples * 7 / 10) << "900 of 2,000 kB are resident";
    EXPECT_GT(fetches() - before, epochs * kSamples * 4 / 10);
}

TEST_F(PeerScenario, AfterTheLossOfANodeOnlyItsShareIsFetchedAgain) {
    World& world = make_peers(kThree);
    run_for(minutes{1});
    ASSERT_EQ(fetches(), kSamples);
    const std::uint64_t lost = share(0);
    const auto epoch = world.epoch(0);
    world.strike(Fault::kNodeLost, 0);
    run_for(minutes{2});
    EXPECT_GT(world.epoch(0), epoch);
    EXPECT_EQ(world.group().members.size(), kNodes - 1);
    EXPECT_LE(fetches(), kSamples + lost + hedges() + failures());
    EXPECT_LE(hedges() + failures(), kNodes * lost) << "each node asks the lost node";
}

TEST_F(PeerScenario, NodeKeepsItsShareWhenAFollowerReplacesItsKilledLeader) {
    World& world = make_peers(kPairs);
    run_for(minutes{1});
    const std::uint64_t owned = share(0);
    const std::size_t leader = world.leader(0).value();
    world.strike(Fault::kKill, leader);
    run_for(seconds{5});
    EXPECT_NE(world.leader(0), leader);
    run_for(minutes{1});
    EXPECT_EQ(share(0), owned);
    EXPECT_EQ(fetches(), kSamples + hedges() + failures());
}

TEST_F(PeerScenario, CutLinkSendsItsTwoNodesToTheOrigin) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    run_for(minutes{1});
    const auto epoch = world.epoch(0);
    world.network().cut("node-0", "node-1", minutes{2});
    run_for(minutes{1});
    EXPECT_GT(world.epoch(0), epoch);
    EXPECT_GT(world.epoch(1), epoch);
    EXPECT_GT(hedges() + failures(), 0U);
    const std::uint64_t healthy = from_peers(2);
    run_for(minutes{1});
    EXPECT_GT(from_peers(2), healthy) << "node-2 still reaches both";
}

TEST_F(PeerScenario, SlowPeerIsHedged) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    run_for(minutes{1});
    const auto epoch = world.epoch(0);
    world.network().slow("node-1", 2000, minutes{2});
    run_for(minutes{1});
    EXPECT_GT(world.epoch(0), epoch);
    EXPECT_GT(hedges(), 0U);
    EXPECT_EQ(failures(), 0U);
}

TEST_F(PeerScenario, StoppedPeerHoldsNobodyUp) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    run_for(minutes{1});
    const auto epoch = world.epoch(0);
    world.stop_for(1, seconds{40});
    run_for(seconds{39});
    EXPECT_GT(world.epoch(0), epoch + 1);
    EXPECT_GT(hedges(), 0U);
}

TEST_F(PeerScenario, PeerThatSendsWrongBytesIsQuarantined) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    run_for(minutes{1});
    world.network().corrupt("node-1", seconds{50});
    run_for(seconds{10});
    const Bytes crossed = world.network().payload_bytes("node-0");
    const auto epoch = world.epoch(0);
    EXPECT_GT(failures(), 0U);
    run_for(seconds{30});
    EXPECT_GT(world.epoch(0), epoch);
    EXPECT_LT(
        (world.network().payload_bytes("node-0") - crossed).count(),
        world.status(0).total_bytes.count())
        << "nothing more comes from node-1";
    run_for(minutes{1});
    EXPECT_GT(from_peers(0), 0U);
}

TEST_F(PeerScenario, OlderGroupChangesNothing) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    run_for(minutes{1});
    const Bytes crossed = world.network().payload_bytes("node-0");
    world.resend_group(0, 0);
    run_for(minutes{1});
    EXPECT_GT(world.network().payload_bytes("node-0"), crossed);
    EXPECT_EQ(hedges() + failures(), 0U);
}

TEST_F(PeerScenario, NodeThatLearnsItsGroupLateServesItsPeersThen) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    world.lose_groups_for(0, seconds{60});
    run_for(seconds{59});
    EXPECT_EQ(world.network().payload_bytes("node-0"), Bytes{});
    run_for(minutes{1});
    EXPECT_GT(world.network().payload_bytes("node-0"), Bytes{});
}

// Each node's sampler has the losses of all ranks, as if all read on one node.
TEST_F(PeerScenario, LossesOfAllRanksReachEveryNode) {
    World& world = make_peers(kThree, {.contract = "importance"});
    run_for(minutes{3});
    ASSERT_GT(world.epoch(0), 3U);
    const std::uint64_t epochs = std::min({world.epoch(0), world.epoch(1), world.epoch(2)});
    for (std::size_t rank = 0; rank < kNodes; ++rank) {
        const std::uint64_t known = world.count("losses of rank " + std::to_string(rank));
        EXPECT_GT(known, (2 * kSamples + (epochs - 2) * kSamples * 7 / 10) * 97 / 100)
            << "two full epochs, then 3/4 of the samples in each";
    }
}

TEST_F(PeerScenario, CutLinkLosesOnlyTheLossesThatCrossedIt) {
    World& world = make_peers(kThree, {.contract = "importance"});
    world.network().cut("node-0", "node-1", minutes{2});
    run_for(minutes{3});
    EXPECT_GT(world.epoch(0), 3U);
    EXPECT_LT(world.count("losses of rank 0"), world.count("losses of rank 2"));
    EXPECT_LT(world.count("losses of rank 1"), world.count("losses of rank 2"));
}

// The oracle reports it if a sample crosses to or from another namespace.
TEST_F(PeerScenario, CertificateOfAnotherNamespaceGetsNoSample) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    run_for(seconds{5});
    const std::uint64_t before = from_peers(1);
    world.give_leaf(1, {"control CA", {"speech", {"train"}}, std::chrono::hours{24}});
    run_for(minutes{2});
    EXPECT_EQ(from_peers(1), before);
    EXPECT_GT(from_peers(0), 0U) << "node-2 serves it";
}

TEST_F(PeerScenario, PeersOfAPodThatRefusesConnectionsContinue) {
    World& world = make_peers(kThree, {.grant = kib(300)});
    world.network().refuse("pod-1.node-1:7331", VirtualNetwork::Refusal::kReset, minutes{3});
    run_for(minutes{2});
    EXPECT_GT(world.epoch(0), 1U);
    EXPECT_GT(failures(), 0U);
}

TEST_F(PeerScenario, GroupGrowsAgainWhenTheNodeIsBack) {
    World& world = make_peers(kThree);
    run_for(minutes{1});
    const std::uint64_t share_before = share(1);
    world.strike(Fault::kShutDown, 1);
    run_for(minutes{1});
    EXPECT_EQ(world.group().members.size(), kNodes);
    EXPECT_EQ(share(1), share_before);
    EXPECT_EQ(fetches(), kSamples + hedges() + failures()) << "the node must have kept its samples";
}

// Each pod is a job that reads all samples. The grants have room for the samples that a node owns in
// a group of three, and few others.
TEST_F(PeerScenario, NodeThatJoinsTakesItsShareFromItsFormerOwners) {
    constexpr std::size_t kAll = kNodes + 1;
    World& world = make_peers(
        {.nodes = kAll, .jobs = kAll, .pods = kAll},
        {.grant = kib(900), .late_pods = 1, .late_by = minutes{1}});
    run_for(minutes{1});
    ASSERT_EQ(world.group().members.size(), kNodes);
    ASSERT_EQ(fetches(), kSamples);
    run_for(minutes{2});
    ASSERT_EQ(world.group().members.size(), kAll);
    EXPECT_EQ(fetches(), kSamples) << "the joiner owns " << share(kNodes);
    EXPECT_GT(share(kNodes), kSamples / 8);
    EXPECT_GE(world.status(kNodes).resident_samples, share(kNodes));
    EXPECT_EQ(hedges() + failures(), 0U);
}

// As above, and most nodes of the group join at once, so most nodes that a joiner asks lack its
// samples. Each of these costs a few requests to the origin.
TEST_F(PeerScenario, NodesThatJoinTogetherTakeTheirSharesFromTheTwoThatWereThere) {
    constexpr std::size_t kAll = 8;
    constexpr std::size_t kOld = 2;
    constexpr std::uint64_t kMany = 1000;
    World& world = make_peers(
        {.nodes = kAll, .jobs = kAll, .pods = kAll},
        {.samples = kMany, .grant = kib(6000), .late_pods = kAll - kOld, .late_by = minutes{2}});
    run_for(seconds{115});
    ASSERT_EQ(world.group().members.size(), kOld);
    ASSERT_EQ(fetches(), kMany);
    run_for(minutes{3});
    ASSERT_EQ(world.group().members.size(), kAll);
    std::uint64_t moved = 0;
    std::uint64_t taken_over = 0;
    for (std::size_t node = kOld; node < kAll; ++node) {
        moved += share(node);
        taken_over += world.status(node).taken_over_samples;
    }
    EXPECT_GT(moved, kMany / 2);
    EXPECT_GT(taken_over, moved * 6 / 10) << "each asks five others for about eight in vain";
    EXPECT_LE(fetches(), kMany + moved - taken_over + hedges() + failures());
}

// How a group shares a million samples. `largest`: the largest share, divided by the mean share.
// `moved`: fraction of the samples that change their owner when the first node leaves.
struct Spread {
    double largest = 0;
    double moved = 0;
};

Spread spread_over(std::vector<std::string> nodes) {
    constexpr std::size_t kKeys = 1'000'000;
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < kKeys; ++i) {
        keys.push_back("train/" + std::to_string(i) + ".jpg");
    }
    const std::vector<std::uint64_t> sizes(kKeys, 1);
    const auto key_of = [&keys](sidecar::SampleIndex sample) -> std::string_view {
        return keys[sample];
    };
    const sidecar::Placement all{sidecar::SampleSizes{sizes}, key_of, nodes, 0};
    const std::vector<std::string> others{nodes.begin() + 1, nodes.end()};
    const sidecar::Placement left{sidecar::SampleSizes{sizes}, key_of, others, 0};
    std::vector<std::size_t> owned(nodes.size());
    std::size_t moved = 0;
    for (sidecar::SampleIndex sample = 0; sample < kKeys; ++sample) {
        const std::size_t owner = all.owner(sample);
        ++owned[owner];
        moved += owner != left.owner(sample) + 1 ? 1 : 0;
    }
    const auto largest = static_cast<double>(std::ranges::max(owned));
    return {
        largest * static_cast<double>(nodes.size()) / static_cast<double>(kKeys),
        static_cast<double>(moved) / static_cast<double>(kKeys)};
}

TEST_F(PeerScenario, SixtyFourNodesAskTheOriginOnce) {
    constexpr std::uint64_t kMany = 640;
    World& world = make_peers(
        {.nodes = 64, .jobs = 1, .pods = 64},
        {.samples = kMany,
         .grant = kib(400),
         .origin_bytes_per_second = 3e6,
         .lasts = seconds{80}});
    run_for(seconds{40});
    ASSERT_EQ(world.group().members.size(), 64U);
    EXPECT_EQ(world.count("fetches"), kMany);
    EXPECT_EQ(hedges() + failures(), 0U);
    std::vector<std::string> nodes;
    for (const control::PeerMember& member : world.group().members) {
        nodes.push_back(member.node);
    }
    const Spread spread = spread_over(nodes);
    EXPECT_LE(spread.largest, 1.05);
    EXPECT_LE(spread.moved, 1.1 / 64);
    const std::uint64_t lost = share(0);
    world.strike(Fault::kNodeLost, 0);
    run_for(seconds{40});
    EXPECT_EQ(world.group().members.size(), 63U);
    EXPECT_LE(world.count("fetches"), kMany + lost + hedges() + failures());
    EXPECT_LE(hedges() + failures(), 64 * lost) << "each node asks the lost node";
}

}  // namespace
}  // namespace stoker::world
