// Bad clients and bad origins of a sidecar. None may affect the next client.
#include <algorithm>
#include <cstring>

#include "tests/integration/sidecar_fixture.h"
#include "tests/support/test_seed.h"

namespace stoker::test {
namespace {

using local::FetchStatus;

class SidecarFaults : public SidecarTest {
protected:
    // Checks that a new client can still read.
    void expect_service() {
        SampleClient client = connect();
        const auto bytes = client.get(3);
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(*bytes, data.payload(domain::SampleId{3}));
    }

    // Returns the error that refuses the Hello.
    [[nodiscard]] Error refusal(const local::Hello& hello) const {
        SampleClient client{config.socket_path};
        const auto welcome = client.hello(hello);
        return welcome ? Error{ErrorCode::kInternal, "welcomed"} : welcome.error();
    }
};

TEST_F(SidecarFaults, RefusesAnotherProtocolVersionNamingBoth) {
    start();
    local::Hello hello;
    hello.version = 9;
    const Error error = refusal(hello);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message.find("version 9"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("version 1"), std::string::npos) << error.message;
}

TEST_F(SidecarFaults, RefusesAnUnknownDatasetNamingTheKnownOnes) {
    start();
    local::Hello hello;
    hello.dataset = "trian";
    const Error error = refusal(hello);
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_NE(error.message.find("train"), std::string::npos) << error.message;
}

TEST_F(SidecarFaults, RandomBytesEndOnlyTheirConnection) {
    start();
    Prng prng{seed()};
    for (int i = 0; i < 200; ++i) {
        SampleClient client{config.socket_path};
        if (prng.below(2) == 0) {
            ASSERT_TRUE(client.hello("train", 4).has_value());
        }
        std::vector<std::byte> bytes(1 + prng.below(300));
        std::ranges::generate(bytes, [&] { return static_cast<std::byte>(prng()); });
        if (prng.below(2) == 0 && bytes.size() > 16) {
            // Sends a plausible header: a short frame of some type with a random payload.
            const auto payload = static_cast<std::uint32_t>(bytes.size() - 16);
            std::memcpy(bytes.data(), &payload, sizeof(payload));
            bytes[4] = static_cast<std::byte>(1 + prng.below(10));
            bytes[5] = bytes[6] = bytes[7] = std::byte{0};
        }
        client.send_bytes(bytes);
    }
    expect_service();
    EXPECT_TRUE(eventually([&] {
        return running->ask([](sidecar::Sidecar& sidecar) { return sidecar.session_count(); }) == 0;
    }));
}

TEST_F(SidecarFaults, AClientWithoutAHelloDoesNotBlockOthers) {
    start();
    SampleClient silent{config.socket_path};
    SampleClient slow{config.socket_path};
    slow.send_bytes({std::byte{1}});
    expect_service();
}

TEST_F(SidecarFaults, RefusesTooManyConnections) {
    config.connections_max = 3;
    start();
    SampleClient a = connect();
    SampleClient b = connect();
    SampleClient c = connect();
    SampleClient d{config.socket_path};
    EXPECT_FALSE(d.hello("train").has_value());
    c.close();
    EXPECT_TRUE(
        eventually([&] { return SampleClient{config.socket_path}.hello("train").has_value(); }));
}

TEST_F(SidecarFaults, AnswersBadRequestsAndKeepsTheSession) {
    start();
    SampleClient client = connect(6);
    EXPECT_EQ(client.fetch({200}).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(
        client.fetch(std::vector<std::uint64_t>(20000, 1)).error().code,
        ErrorCode::kInvalidArgument);
    EXPECT_EQ(client.plan(1, {1, 2, 200}).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(client.plan(1, {1, 2}, 3).error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(client.get(3).has_value());
    EXPECT_TRUE(client.plan(1, {}).has_value());
}

TEST_F(SidecarFaults, RefusesAPlanWithoutAStream) {
    start();
    SampleClient client = connect(0);
    EXPECT_EQ(client.plan(1, {1}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(SidecarFaults, FreesTheResourcesOfAClientThatDiesDuringAFetch) {
    config.datasets[0].grant_bytes = Bytes::zero();
    config.datasets[0].window_bytes = kib(64);
    start();
    SampleClient first = connect(1);
    origin->hold();
    first.send(local::Fetch{{1, 2}});
    ASSERT_TRUE(eventually([&] { return origin->fetches() == 2; }));
    first.close();
    origin->release();
    EXPECT_TRUE(eventually([&] {
        const auto now = status();
        return now.counters.stored_samples == 2 && now.bytes.window == Bytes::zero();
    }));
    expect_service();
}

TEST_F(SidecarFaults, FetchesASampleAgainWhoseBytesDoNotMatchTheStoredChecksum) {
    start();
    SampleClient client = connect();
    origin->damage(std::string{data.manifest().sample(domain::SampleId{5}).key}, 2);
    const auto fetched = client.fetch({4, 5, 6});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(fetched->statuses, std::vector(3, FetchStatus::kReady));
    EXPECT_EQ(origin->fetches_of(domain::SampleId{5}), 3U);
    EXPECT_EQ(status().origin_requests, 5U);
    EXPECT_EQ(client.get(5).value(), data.payload(domain::SampleId{5}));
}

TEST_F(SidecarFaults, RefusesASampleWhoseBytesNeverMatchTheStoredChecksum) {
    start();
    SampleClient client = connect();
    origin->damage(std::string{data.manifest().sample(domain::SampleId{5}).key}, 1'000'000);
    const auto fetched = client.fetch({4, 5, 6});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(
        fetched->statuses,
        (std::vector{FetchStatus::kReady, FetchStatus::kOriginError, FetchStatus::kReady}));
    EXPECT_EQ(origin->fetches_of(domain::SampleId{5}), FakeOrigin::kAttemptsMax + 1);
}

TEST_F(SidecarFaults, ExplainsAnEmptyDatasetAndAMissingETag) {
    start();
    ASSERT_TRUE(
        eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
    for (const auto& [objects, words] :
         {std::pair{std::vector<domain::ListedObject>{}, "empty"},
          std::pair{std::vector<domain::ListedObject>{{"a.png", 3, ""}}, "a.png"}}) {
        TempFolder other;
        auto settings = config;
        settings.socket_path = other.path() + "/s.sock";
        settings.datasets[0].directory = other.path() + "/node";
        origin_error = Error{ErrorCode::kUnavailable, "not yet"};
        FakeOrigin* theirs = nullptr;
        const auto second = run(settings, theirs);
        theirs->list_instead(objects);
        theirs->fail_with(std::nullopt);
        std::string message;
        EXPECT_TRUE(eventually([&] {
            const auto welcome = SampleClient{settings.socket_path}.hello("train");
            message = welcome ? "welcomed" : welcome.error().message;
            return message.find(words) != std::string::npos;
        })) << message;
    }
}

TEST_F(SidecarFaults, SendsClientsToTheOriginWhenTheDiskIsFull) {
    config.datasets[0].reserved_free = 0.999999;
    start();
    SampleClient client = connect();
    const auto fetched = client.fetch({1, 2});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(
        fetched->statuses, (std::vector{FetchStatus::kReadAtOrigin, FetchStatus::kReadAtOrigin}));
    const auto now = status();
    EXPECT_FALSE(now.admitting);
    EXPECT_FALSE(now.error.empty());
}

TEST_F(SidecarFaults, ExplainsADirectoryThatCannotBeMade) {
    config.datasets[0].directory = "/proc/nowhere/train";
    start();
    SampleClient client{config.socket_path};
    const auto refused = client.hello("train");
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("/proc/nowhere"), std::string::npos)
        << refused.error().message;
}

}  // namespace
}  // namespace stoker::test
