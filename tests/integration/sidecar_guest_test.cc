// Sidecars of namespaces that a Dataset is shared with: they are followers through their
// namespace's guest socket, and wait for a leader if they have no credentials for the origin.
#include <future>
#include <thread>

#include "sidecar/service/monitor.h"
#include "tests/integration/sidecar_guest_fixture.h"

namespace stoker::test {
namespace {

local::Begin begin_of(const std::string& job) {
    local::Begin begin;
    begin.batch = 16;
    begin.contract = "importance";
    begin.job = job;
    return begin;
}

class SidecarGuest : public SidecarGuestTest {};

TEST_F(SidecarGuest, OwnersSidecarIsInUseWhileAGuestIsConnected) {
    const auto is_in_use = [this] {
        return running->ask([](sidecar::Sidecar& sidecar) { return sidecar.is_in_use(); });
    };
    start_serving();
    EXPECT_FALSE(is_in_use());
    Guest& guest = invite("team-a");
    ASSERT_TRUE(eventually(is_in_use)) << "a guest's sidecar stays connected without a trainer";
    std::this_thread::sleep_for(std::chrono::seconds{1});
    EXPECT_TRUE(is_in_use());
    guest.running.reset();
    EXPECT_TRUE(eventually([&] { return !is_in_use(); }));
}

TEST_F(SidecarGuest, AFollowerInTheDatasetsNamespaceIsInUse) {
    start_serving();
    FakeOrigin* other_origin = nullptr;
    sidecar::SidecarConfig settings = config;
    settings.socket_path = folder.path() + "/other.sock";
    const auto other = run(settings, other_origin);
    ASSERT_TRUE(eventually([&] {
        return other->ask([](sidecar::Sidecar& sidecar) {
            return sidecar.nodes()[0]->role() == sidecar::Role::kFollowing;
        });
    }));
    EXPECT_TRUE(other->ask([](sidecar::Sidecar& sidecar) { return sidecar.is_in_use(); }));
}

TEST_F(SidecarGuest, ALeaderWithoutReadersIsInUseWhileItsGrantIsValid) {
    start_serving();
    const auto is_in_use_with = [this](std::optional<Duration> valid) {
        return running->ask([valid](sidecar::Sidecar& sidecar) {
            const SystemClock clock;
            sidecar::EngineGrant grant{mib(1), std::nullopt};
            if (valid) {
                grant.valid_until = clock.now() + *valid;
            }
            sidecar.set_grant("train", grant, {});
            return sidecar.is_in_use();
        });
    };
    EXPECT_TRUE(is_in_use_with(std::chrono::minutes{1}));
    EXPECT_FALSE(is_in_use_with(-std::chrono::minutes{1}));
    EXPECT_FALSE(is_in_use_with(std::nullopt)) << "nobody granted it";
}

TEST_F(SidecarGuest, WithoutAKeyIsReadyOnceALeaderServes) {
    origin_has_key = false;
    Guest& guest = invite("team-a");
    EXPECT_FALSE(guest.is_ready());
    auto welcome = std::async(std::launch::async, [&] {
        SampleClient client{guest.config.socket_path};
        return client.hello("train", 9);
    });
    ASSERT_TRUE(eventually([&] { return !guest.error().empty(); }));
    EXPECT_EQ(
        guest.error(),
        "no sidecar of the dataset's owner serves this node yet; waiting for one, because this "
        "pod has no key of its own");
    EXPECT_EQ(welcome.wait_for(std::chrono::milliseconds{1500}), std::future_status::timeout);
    EXPECT_FALSE(guest.is_ready());
    origin_has_key = true;
    start_serving();
    EXPECT_TRUE(welcome.get().has_value());
    EXPECT_TRUE(guest.is_ready());
    EXPECT_EQ(guest.error(), "");
}

TEST_F(SidecarGuest, WithoutAKeyFetchesWaitForTheNextLeader) {
    show_to("team-a");
    start_serving();
    origin_has_key = false;
    Guest& guest = invite("team-a");
    SampleClient client = connect_to(guest, 9);
    ASSERT_TRUE(client.plan(1, all()).has_value());
    stop();
    ASSERT_TRUE(eventually([&] { return !guest.error().empty(); }));
    auto fetched = std::async(std::launch::async, [&] { return client.fetch({100, 101}); });
    EXPECT_EQ(fetched.wait_for(std::chrono::milliseconds{500}), std::future_status::timeout);
    start();
    const auto answer = fetched.get();
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->statuses[0], local::FetchStatus::kReady);
    read_all(client, all(), 1);
}

TEST_F(SidecarGuest, GuestsCannotTakeRanksOfOtherNamespacesJobs) {
    for (const char* name : {"team-a", "team-b"}) {
        show_to(name);
    }
    start_serving();
    ASSERT_TRUE(is_open("team-a") && is_open("team-b"));
    SampleClient own = connect(1);
    own.send(begin_of("job"));
    ASSERT_TRUE(std::holds_alternative<local::Begun>(own.receive()->message));
    std::uint64_t stream = 10;
    for (const char* name : {"team-a", "team-b"}) {
        SampleClient guest = at_the_door(name, ++stream);
        for (const char* job : {"owners-job/job", "job", "uid/job"}) {
            guest.send(begin_of(job));
            const auto answer = guest.receive();
            ASSERT_TRUE(answer.has_value());
            EXPECT_TRUE(std::holds_alternative<local::Begun>(answer->message))
                << name << " got the rank of another namespace's job " << job;
        }
    }
    own.send(local::Draw{0, 4});
    EXPECT_TRUE(std::holds_alternative<local::Drawn>(own.receive()->message));
}

TEST_F(SidecarGuest, TheGuestSocketAcceptsOnlySidecars) {
    show_to("team-a");
    start_serving();
    ASSERT_TRUE(is_open("team-a"));
    SampleClient stranger{door("team-a")};
    EXPECT_EQ(stranger.hello("train", 9).error().code, ErrorCode::kForbidden);
    SampleClient trainer{door("team-a")};
    trainer.send(local::Peer{{}, 5});
    EXPECT_EQ(trainer.hello("train", 9).error().code, ErrorCode::kForbidden);
}

TEST_F(SidecarGuest, ClientsOfOneGuestSocketShareOneLimit) {
    show_to("team-a");
    start_serving();
    ASSERT_TRUE(is_open("team-a"));
    std::vector<SampleClient> clients;
    std::size_t refused = 0;
    for (std::uint64_t stream = 1; stream <= 80; ++stream) {
        clients.push_back(at_the_door("team-a", stream));
        refused += clients.back().plan(1, {1, 2, 3}).has_value() ? 0 : 1;
    }
    EXPECT_EQ(refused, 16U) << "whatever sidecars they say that they are";
    EXPECT_TRUE(connect(5).plan(1, all()).has_value());
}

TEST_F(SidecarGuest, TheStartupProbeOfAPodWithoutAKeyWaitsForALeader) {
    origin_has_key = false;
    Guest& guest = invite("team-a");
    const auto probe = [&](const char* path) {
        return guest.running->ask([&](sidecar::Sidecar& sidecar) {
            metrics::Registry registry;
            const sidecar::Monitor monitor{sidecar, guest.running->loop(), registry};
            http::ServerRequest request;
            request.peer = "127.0.0.1:1";
            request.method = "GET";
            request.target = path;
            return monitor.answer(request).status;
        });
    };
    EXPECT_EQ(probe("/readyz"), 503);
    EXPECT_EQ(probe("/healthz"), 200);
    origin_has_key = true;
    start_serving();
    EXPECT_TRUE(eventually([&] { return probe("/readyz") == 200; }));
}

}  // namespace
}  // namespace stoker::test
