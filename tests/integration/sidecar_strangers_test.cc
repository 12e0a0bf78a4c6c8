// Untrusted peers of a sidecar: strangers at leader.sock, trainers that send sidecars' frames, and
// trainers that claim the rank of another pod.
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sidecar/service/peer_secret.h"
#include "tests/integration/sidecar_pair_fixture.h"

namespace stoker::test {
namespace {

local::Hello hello_of(bool relay, std::uint64_t stream) {
    local::Hello hello;
    hello.relay = relay;
    hello.stream = stream;
    hello.dataset = "train";
    return hello;
}

class SidecarStrangers : public SidecarPairTest {
protected:
    [[nodiscard]] std::string control() const {
        return domain::control_folder(config.datasets[0].directory);
    }

    [[nodiscard]] SampleClient at_the_leaders_door() const {
        return SampleClient{control() + "/leader.sock"};
    }

    // Rank 0 of a job that reads by importance.
    static local::Begin begin() {
        local::Begin begin;
        begin.batch = 16;
        begin.contract = "importance";
        begin.job = "job";
        return begin;
    }
};

TEST_F(SidecarStrangers, OnlyTheSidecarsUserCanReadTheControlDirectory) {
    start();
    ASSERT_TRUE(
        eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
    using std::filesystem::perms;
    EXPECT_EQ(std::filesystem::status(control()).permissions(), perms::owner_all);
    EXPECT_EQ(
        std::filesystem::status(control() + "/secret").permissions(),
        perms::owner_read | perms::owner_write);
}

TEST_F(SidecarStrangers, LeaderSocketRefusesAHelloWithoutTheSecret) {
    start_both();
    SampleClient stranger = at_the_leaders_door();
    EXPECT_EQ(stranger.hello(hello_of(true, 9)).error().code, ErrorCode::kForbidden);
}

TEST_F(SidecarStrangers, LeaderSocketRefusesAWrongSecret) {
    start_both();
    SampleClient stranger = at_the_leaders_door();
    stranger.send(local::Peer{sidecar::random_secret(), 5});
    const auto answer = stranger.receive();
    ASSERT_TRUE(answer.has_value());
    const auto& error = std::get<local::ErrorReply>(answer->message);
    EXPECT_EQ(static_cast<ErrorCode>(error.code), ErrorCode::kForbidden);
    EXPECT_FALSE(stranger.receive().has_value());
}

TEST_F(SidecarStrangers, LeaderSocketAnswersASidecar) {
    start_both();
    const auto secret = sidecar::load_secret(*device, control()).value();
    SampleClient peer = at_the_leaders_door();
    peer.send(local::Peer{secret, 5});
    const std::uint64_t ping = peer.send(local::Ping{});
    const auto pong = peer.receive();
    ASSERT_TRUE(pong.has_value());
    EXPECT_TRUE(std::holds_alternative<local::Pong>(pong->message));
    EXPECT_EQ(pong->request_id, ping);
    EXPECT_TRUE(peer.hello(hello_of(true, 9)).has_value());
}

TEST_F(SidecarStrangers, ATrainerCannotActForOthers) {
    start();
    SampleClient trainer{config.socket_path};
    EXPECT_EQ(trainer.hello(hello_of(true, 9)).error().code, ErrorCode::kForbidden);
    SampleClient peer{config.socket_path};
    peer.send(local::Peer{sidecar::random_secret(), 5});
    const auto answer = peer.receive();
    EXPECT_TRUE(answer && std::holds_alternative<local::ErrorReply>(answer->message));
}

TEST_F(SidecarStrangers, AFrameThatOnlySidecarsSendEndsOnlyItsSession) {
    start_both();
    SampleClient good = connect_second(3);
    const std::vector<local::Message> frames = {
        local::Counted{1, 2, 3, 4}, local::Ping{}, local::Welcome{}, local::Fetched{}};
    for (const local::Message& frame : frames) {
        SampleClient bad = connect_second(4);
        bad.send(frame);
        const auto answer = bad.receive();
        ASSERT_TRUE(answer && std::holds_alternative<local::ErrorReply>(answer->message));
        EXPECT_FALSE(bad.receive().has_value()) << "the session goes on";
    }
    EXPECT_TRUE(good.fetch({1}).has_value());
}

TEST_F(SidecarStrangers, RefusesAPlanOfTooManySamples) {
    start_both();
    constexpr std::uint64_t kMany = std::uint64_t{1} << 27U;
    const UniqueFd memfd{::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ASSERT_EQ(::ftruncate(memfd.get(), kMany * sizeof(std::uint64_t)), 0);
    ASSERT_EQ(::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_GROW), 0);
    SampleClient of_leader = connect(1);
    SampleClient of_follower = connect_second(2);
    for (SampleClient* client : {&of_leader, &of_follower}) {
        client->send(local::Plan{1, kMany, 0}, memfd.get());
        const auto answer = client->receive();
        ASSERT_TRUE(answer && std::holds_alternative<local::ErrorReply>(answer->message));
        EXPECT_TRUE(client->plan(1, all()).has_value()) << "the session goes on";
    }
}

TEST_F(SidecarStrangers, ATrainerCannotTakeAnotherPodsRank) {
    start_both();
    SampleClient owner = connect(1);
    owner.send(begin());
    ASSERT_TRUE(std::holds_alternative<local::Begun>(owner.receive()->message));
    SampleClient thief = connect_second(2);
    thief.send(begin());
    const auto refused = thief.receive();
    ASSERT_TRUE(refused.has_value());
    const auto& error = std::get<local::ErrorReply>(refused->message);
    EXPECT_EQ(static_cast<ErrorCode>(error.code), ErrorCode::kConflict);
    thief.send_bytes(local::encode_frame(local::Losses{0, {1, 2}, {9.0F, 9.0F}}, 0));
    thief.send(local::AskSnapshot{});
    ASSERT_TRUE(thief.receive().has_value());  // the earlier losses were handled
    owner.send(local::Draw{0, 4});
    EXPECT_TRUE(std::holds_alternative<local::Drawn>(owner.receive()->message));
    owner.send(local::AskEpoch{0});
    const auto tally = owner.receive();
    EXPECT_EQ(std::get<local::EpochTally>(tally->message).losses_used, 0U);
}

}  // namespace
}  // namespace stoker::test
