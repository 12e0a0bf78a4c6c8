// Leaders of one dataset on several nodes that fetch from each other.
#include <algorithm>
#include <cmath>

#include "tests/integration/sidecar_peers_fixture.h"
#include "tests/support/test_seed.h"

namespace stoker::test {
namespace {

using PeersSidecarTest = PeersTest;

TEST_F(PeersSidecarTest, EachSampleIsAskedOfTheOriginOnce) {
    start_group(3);
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        read_all(epoch, {shuffled(epoch), shuffled(epoch + 10), shuffled(epoch + 20)});
    }
    for (std::uint64_t id = 0; id < data.manifest().sample_count(); ++id) {
        EXPECT_EQ(origin->fetches_of(domain::SampleId{id}), 1U) << "sample " << id;
    }
    std::uint64_t from_origin = 0;
    for (std::size_t node = 0; node < 3; ++node) {
        EXPECT_EQ(status(node).peer_hedges, 0U);
        EXPECT_EQ(status(node).peer_failures, 0U);
        EXPECT_EQ(status(node).peer_samples, 200 - owned_by(node, 3).size());
        from_origin += status(node).origin_requests;
    }
    EXPECT_EQ(from_origin, 200U);
}

TEST_F(PeersSidecarTest, RandomGroupsAskTheOriginOncePerSample) {
    Prng prng{seed()};
    std::vector<std::uint64_t> sizes(500 + prng.below(1500));
    for (auto& size : sizes) {  // nearly log-normal: most are small, some are large
        size = static_cast<std::uint64_t>(
            std::exp(5.0 + 1.3 * (prng.unit() + prng.unit() + prng.unit() + prng.unit())));
    }
    data = Dataset{sizes};
    max_in_flight = static_cast<std::uint32_t>(1 + prng.below(64));
    const std::size_t nodes = 2 + prng.below(4);
    start_group(nodes);
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        std::vector<std::vector<std::uint64_t>> orders;
        for (std::size_t node = 0; node < nodes; ++node) {
            orders.push_back(shuffled(prng()));
        }
        read_all(epoch, orders);
    }
    EXPECT_EQ(origin->fetches(), sizes.size()) << nodes << " nodes, " << max_in_flight;
}

// The nodes read disjoint halves of the samples, different ones in each epoch.
TEST_F(PeersSidecarTest, GrantsForHalfOfTheDatasetSaveHalfOfTheFetches) {
    data = Dataset{std::vector<std::uint64_t>(400, 1000)};
    grant = Bytes{domain::record_bytes(1000)} * 100;
    start_group(2);
    for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
        origin->forget_counts();
        const auto order = shuffled(epoch);
        read_all(epoch, {{order.begin(), order.begin() + 200}, {order.begin() + 200, order.end()}});
        EXPECT_NEAR(
            static_cast<double>(origin->fetches()), epoch == 1 ? 400 : 200, epoch == 1 ? 0 : 4);
    }
    EXPECT_EQ(status(0).resident_samples, 100U);
    EXPECT_EQ(status(1).resident_samples, 100U);
}

TEST_F(PeersSidecarTest, OnlyTheShareOfADeadPeerIsFetchedAgain) {
    grant = std::max(records(owned_by(0, 2)), records(owned_by(1, 2)));
    start_group(2);
    read(0, 1, shuffled(1));
    origin->forget_counts();
    hub.cut("n1");
    read(0, 2, shuffled(2));
    EXPECT_EQ(origin->fetches(), 200 - status(0).resident_samples);
    EXPECT_LE(origin->fetches(), owned_by(1, 2).size());
    origin->forget_counts();
    hub.heal("n1");
    ASSERT_TRUE(eventually([&] {
        const auto before = status(0).peer_samples;
        read(0, 3, owned_by(1, 2));
        return status(0).peer_samples > before;
    })) << "it connects again";
}

TEST_F(PeersSidecarTest, WrongBytesOfAPeerAreNeverServed) {
    start_group(2);
    hub.corrupt("n1");
    read(0, 1, shuffled(1));
    EXPECT_EQ(status(0).peer_samples, 0U);
    EXPECT_GE(status(0).peer_failures, 1U);
    EXPECT_EQ(status(0).peer_hedges, 0U);
}

TEST_F(PeersSidecarTest, AStalledPeerIsHedged) {
    grant = std::max(records(owned_by(0, 2)), records(owned_by(1, 2)));
    start_group(2);
    read(0, 1, shuffled(1));
    ASSERT_EQ(status(0).peer_hedges, 0U);
    hub.stall("n1");
    read(0, 2, owned_by(1, 2));
    EXPECT_GE(status(0).peer_hedges, sidecar::PeerFetches::kStalledMin);
    EXPECT_EQ(status(0).peer_failures, 0U);
}

// With one fetch slot per node, each node often waits for the other's slot.
TEST_F(PeersSidecarTest, NodesWithOneSlotDoNotBlockEachOther) {
    max_in_flight = 1;
    start_group(2);
    read_all(1, {shuffled(1), shuffled(2)});
    EXPECT_EQ(status(0).peer_hedges + status(1).peer_hedges, 0U);
    EXPECT_EQ(origin->fetches(), 200U);
}

TEST_F(PeersSidecarTest, SamplesFromAPeerStayAfterItLeaves) {
    start_group(2);
    read(0, 1, shuffled(1));
    sidecars.pop_back();
    form_group();
    origin->forget_counts();
    read(0, 2, shuffled(2));
    EXPECT_EQ(origin->fetches(), 0U);
}

}  // namespace
}  // namespace stoker::test
