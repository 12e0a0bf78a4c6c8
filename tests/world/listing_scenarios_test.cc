// Stories of nodes of which one lists the origin for all: docs/design/peers.md.
#include "tests/world/scenario.h"

namespace stoker::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ListingScenario : public Scenario {
protected:
    World& make_nodes(std::size_t nodes, Duration lasts = minutes{4}) {
        nodes_ = nodes;
        return make(
            {.nodes = nodes, .jobs = 1, .pods = nodes},
            {.is_operated = true,
             .is_pinned = true,
             .has_peers = true,
             .trainers_wait = seconds{10},
             .lasts = lasts});
    }

    // Runs for `time`. After 5 s, when the sidecars have begun, each node gets a grant.
    void grant_and_run_for(Duration time) {
        run_for(seconds{5});
        for (std::size_t node = 0; node < nodes_; ++node) {
            world_->grant(node, gib(1));
        }
        run_for(time - seconds{5});
    }

    [[nodiscard]] std::uint64_t listings() const { return world_->count("listings"); }

    // Nodes whose leader took the manifest from another node's leader.
    [[nodiscard]] std::size_t takers() const {
        std::size_t count = 0;
        for (std::size_t node = 0; node < nodes_; ++node) {
            count += world_->status(node).manifests_taken;
        }
        return count;
    }

    std::size_t nodes_ = 0;
};

TEST_F(ListingScenario, OriginIsListedOnceForAllNodes) {
    World& world = make_nodes(5);
    grant_and_run_for(minutes{1});
    EXPECT_EQ(listings(), 1U);
    EXPECT_EQ(takers(), 4U);
    EXPECT_GT(world.epoch(0), 0U);
}

TEST_F(ListingScenario, SixtyFourNodesListTheOriginOnce) {
    make_nodes(64, seconds{40});
    grant_and_run_for(seconds{40});
    EXPECT_EQ(listings(), 1U);
    EXPECT_EQ(takers(), 63U);
}

// Each leader is killed before the first one can have listed; all come back.
TEST_F(ListingScenario, KilledLeadersHoldNobodyUp) {
    World& world = make_nodes(3);
    for (std::size_t pod = 0; pod < 3; ++pod) {
        run_for(milliseconds{150});
        world.strike(Fault::kKill, pod);
    }
    grant_and_run_for(minutes{2});
    EXPECT_GE(listings(), 1U);
    EXPECT_LE(listings(), 6U);
    for (std::size_t pod = 0; pod < 3; ++pod) {
        EXPECT_GT(world.epoch(pod), 0U);
    }
}

TEST_F(ListingScenario, NodeCutOffFromItsPeersListsForItself) {
    World& world = make_nodes(3);
    for (const char* other : {"node-0", "node-1"}) {
        world.network().cut("node-2", other, minutes{3});
        world.network().cut(other, "node-2", minutes{3});
    }
    grant_and_run_for(minutes{2});
    EXPECT_EQ(listings(), 2U);
    EXPECT_GT(world.epoch(2), 0U);
}

TEST_F(ListingScenario, NodeThatNeverLearnsItsGroupListsAlone) {
    World& world = make_nodes(3);
    world.lose_groups_for(0, minutes{3});
    grant_and_run_for(minutes{1});
    EXPECT_EQ(listings(), 2U);
    EXPECT_GT(world.epoch(0), 0U);
}

}  // namespace
}  // namespace stoker::world
