// Two sidecars on one node directory: one leads, the other relays its trainer's session, and leads
// when the first one is gone. (sidecar_kill_test.cc kills the leader.)
#include "tests/integration/sidecar_pair_fixture.h"

namespace stoker::test {
namespace {

class SidecarTakeover : public SidecarPairTest {};

TEST_F(SidecarTakeover, AFollowerServesThroughTheLeader) {
    start_both();
    SampleClient client = connect_second(9);
    EXPECT_EQ(client.welcome().directory, second_config.datasets[0].client_directory);
    EXPECT_EQ(second_role(), sidecar::Role::kFollowing);
    ASSERT_TRUE(client.plan(1, all()).has_value());
    read_all(client, all(), 1);
    EXPECT_EQ(origin->fetches(), 200U);
    EXPECT_EQ(second_origin->fetches(), 0U);
}

TEST_F(SidecarTakeover, TrainersOfBothShareOneFetchPerSample) {
    start_both();
    SampleClient first_client = connect(1);
    SampleClient second_client = connect_second(2);
    const auto order = shuffled(3);
    ASSERT_TRUE(first_client.plan(1, order).has_value());
    ASSERT_TRUE(second_client.plan(1, order).has_value());
    read_all(first_client, order, 1);
    read_all(second_client, order, 1);
    EXPECT_EQ(origin->fetches() + second_origin->fetches(), 200U);
}

TEST_F(SidecarTakeover, FollowerTakesOverWhenTheLeaderEndsDuringAnEpoch) {
    start_both();
    SampleClient client = connect_second(9);
    const auto order = shuffled(4);
    ASSERT_TRUE(client.plan(1, order).has_value());
    const auto middle = order.begin() + 100;
    read_all(client, {order.begin(), middle}, 1);
    stop();
    read_all(client, {middle, order.end()}, 1);
    EXPECT_TRUE(eventually([&] { return second_role() == sidecar::Role::kLeading; }));
    EXPECT_EQ(second_origin->listings(), 0U);  // clients use the existing revision
}

TEST_F(SidecarTakeover, ANewLeaderKnowsTheReadsOfThePlan) {
    config.datasets[0].grant_bytes = second_config.datasets[0].grant_bytes = Bytes::zero();
    config.datasets[0].window_bytes = second_config.datasets[0].window_bytes = kib(128);
    start_both();
    SampleClient client = connect_second(9);
    const auto order = shuffled(5);
    ASSERT_TRUE(client.plan(1, order).has_value());
    const auto middle = order.begin() + 100;
    read_all(client, {order.begin(), middle}, 1);
    stop();
    read_all(client, {middle, order.end()}, 1);
    for (auto sample = order.begin(); sample != middle; ++sample) {
        EXPECT_EQ(second_origin->fetches_of(domain::SampleId{*sample}), 0U)
            << "sample " << *sample << " was read before";
    }
}

TEST_F(SidecarTakeover, ANewLeaderContinuesIntoTheNextEpoch) {
    config.datasets[0].grant_bytes = second_config.datasets[0].grant_bytes = Bytes::zero();
    config.datasets[0].window_bytes = second_config.datasets[0].window_bytes = kib(128);
    start_both();
    SampleClient client = connect_second(9);
    EXPECT_NE(client.welcome().features & local::kFeatureAhead, 0U);
    const auto order = shuffled(6);
    const auto middle = order.begin() + 100;
    const std::vector own(order.begin(), middle);
    ASSERT_TRUE(client.plan(1, own, 0, {middle, order.end()}).has_value());
    read_all(client, {order.begin(), order.begin() + 50}, 1);
    stop();
    read_all(client, {order.begin() + 50, middle}, 1);
    const domain::SampleId next{*middle};
    EXPECT_TRUE(eventually([&] { return second_origin->fetches_of(next) == 1; }))
        << "nobody asks for what the next epoch begins with";
    ASSERT_TRUE(client.plan(2, {middle, order.end()}).has_value());
    read_all(client, {middle, order.end()}, 2);
    for (auto sample = middle; sample != order.end(); ++sample) {
        EXPECT_EQ(second_origin->fetches_of(domain::SampleId{*sample}), 1U) << "sample " << *sample;
    }
}

TEST_F(SidecarTakeover, ANewLeaderAnswersTheOldLeadersPendingFetch) {
    start_both();
    SampleClient client = connect_second(9);
    origin->hold();
    const std::uint64_t request = client.send(local::Fetch{{7}});
    ASSERT_TRUE(eventually([&] { return origin->fetches() == 1; }));
    stop();
    const auto answer = client.receive();
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->request_id, request);
    EXPECT_EQ(std::get<local::Fetched>(answer->message).statuses.at(0), local::FetchStatus::kReady);
}

TEST_F(SidecarTakeover, AnIdleFollowerTakesTheLeadToo) {
    start_both();
    stop();
    EXPECT_TRUE(eventually([&] { return second_role() == sidecar::Role::kLeading; }));
}

TEST_F(SidecarTakeover, AReplacedPlanIsNotAnsweredTwice) {
    start_both();
    SampleClient client = connect_second(9);
    ASSERT_TRUE(client.plan(1, all()).has_value());
    stop();
    ASSERT_TRUE(client.plan(2, all()).has_value());
    const auto fetched = client.fetch({3});
    ASSERT_TRUE(fetched.has_value()) << fetched.error().message;
}

}  // namespace
}  // namespace stoker::test
