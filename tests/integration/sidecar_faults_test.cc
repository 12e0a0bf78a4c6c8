// Faults around a sidecar: bad clients, bad origins, bad disks. None may affect the next client.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/integration/sidecar_fixture.h"
#include "tests/support/test_seed.h"

namespace stoker::test {
namespace {

using local::FetchStatus;

class SidecarFaults : public SidecarTest {
protected:
    // A new client can still read.
    void expect_service() {
        SampleClient client = connect();
        const auto bytes = client.get(3);
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(*bytes, data.payload(domain::SampleId{3}));
    }

    // The error that refuses the Hello.
    [[nodiscard]] Error refusal(const local::Hello& hello) const {
        SampleClient client{config.socket_path};
        const auto welcome = client.hello(hello);
        return welcome ? Error{ErrorCode::kInternal, "welcomed"} : welcome.error();
    }

    [[nodiscard]] std::vector<std::filesystem::path> segments() const {
        std::vector<std::filesystem::path> paths;
        for (const auto& entry : std::filesystem::directory_iterator{
                 config.datasets[0].client_directory + "/segments"}) {
            paths.push_back(entry.path());
        }
        return paths;
    }

    // Overwrites the middle of every segment.
    void damage_segments() const {
        for (const auto& path : segments()) {
            std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
            file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 64));
            file << std::string(2000, '!');
        }
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
            // A plausible header: a short frame of some type with a random payload.
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

TEST_F(SidecarFaults, RefusesAPlanThatIsNotASealedMemfdOfItsLength) {
    start();
    SampleClient client = connect(6);
    const auto refused = [&client](int fd, std::uint64_t count) {
        client.send(local::Plan{1, count, 0}, fd);
        const auto answer = client.receive();
        return answer && std::holds_alternative<local::ErrorReply>(answer->message);
    };
    EXPECT_TRUE(refused(-1, 1));
    const UniqueFd unsealed{::memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    const std::uint64_t id = 1;
    ASSERT_EQ(::write(unsealed.get(), &id, sizeof(id)), static_cast<ssize_t>(sizeof(id)));
    EXPECT_TRUE(refused(unsealed.get(), 1));
    const UniqueFd file{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
    EXPECT_TRUE(refused(file.get(), 1));
    EXPECT_TRUE(refused(sealed_ids({1, 2}).get(), 3));
    EXPECT_TRUE(refused(sealed_ids({1, 2}).get(), std::uint64_t{1} << 60U));
    EXPECT_TRUE(client.plan(1, {1, 2}).has_value());
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

TEST_F(SidecarFaults, ReportsAnOutageOfTheOriginAndRecovers) {
    start();
    SampleClient client = connect();
    origin->fail_with(Error{ErrorCode::kUnavailable, "503 Slow Down for 'train/7'"});
    const auto failed = client.fetch({7});
    ASSERT_TRUE(failed.has_value());
    EXPECT_EQ(failed->statuses.at(0), FetchStatus::kOriginError);
    EXPECT_EQ(failed->message, "503 Slow Down for 'train/7'");
    origin->fail_with(std::nullopt);
    EXPECT_EQ(client.get(7).value(), data.payload(domain::SampleId{7}));
}

TEST_F(SidecarFaults, PrefetchContinuesAfterAnOutageOfTheOrigin) {
    start();
    SampleClient client = connect(2);
    origin->fail_with(Error{ErrorCode::kUnavailable, "503"});
    ASSERT_TRUE(client.plan(1, all()).has_value());
    ASSERT_TRUE(eventually([&] { return status().counters.origin_failures > 0; }));
    origin->fail_with(std::nullopt);
    EXPECT_TRUE(eventually([&] { return status().bytes.resident_samples == 200; }));
}

TEST_F(SidecarFaults, AMissingObjectFailsOnlyItsOwnSample) {
    start();
    SampleClient client = connect();
    const std::string key{data.manifest().sample(domain::SampleId{5}).key};
    origin->fail_key(key, {ErrorCode::kNotFound, "404 for '" + key + "'"});
    const auto fetched = client.fetch({4, 5, 6});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(
        fetched->statuses,
        (std::vector{FetchStatus::kReady, FetchStatus::kOriginError, FetchStatus::kReady}));
    EXPECT_NE(fetched->message.find(key), std::string::npos);
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

TEST_F(SidecarFaults, ReportsListingErrorsToTheClientAndRetries) {
    origin_error = Error{ErrorCode::kForbidden, "403 AccessDenied: bucket 'mnist'"};
    start();
    SampleClient client{config.socket_path};
    const auto refused = client.hello("train");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), *origin_error);
    origin->fail_with(std::nullopt);
    EXPECT_TRUE(
        eventually([&] { return SampleClient{config.socket_path}.hello("train").has_value(); }));
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

TEST_F(SidecarFaults, KeepsOddKeysUnchanged) {
    start();
    ASSERT_TRUE(
        eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
    stop();
    std::filesystem::remove_all(config.datasets[0].directory);
    origin_error = Error{ErrorCode::kUnavailable, "not yet"};
    start();
    std::vector<domain::ListedObject> objects;
    for (const char* key : {"a b.png", "ü/ß.png", "100%.png", "1+1.png", "../up.png", "q?x=1&y"}) {
        objects.push_back({key, 3, "etag"});
    }
    origin->list_instead(objects);
    origin->fail_with(std::nullopt);
    ASSERT_TRUE(
        eventually([&] { return SampleClient{config.socket_path}.hello("train").has_value(); }));
    SampleClient client = connect();
    EXPECT_EQ(client.welcome().sample_count, objects.size());
    const auto fetched = client.fetch({0});  // the fake has no such object
    ASSERT_TRUE(fetched.has_value());
    EXPECT_NE(fetched->message.find("../up.png"), std::string::npos) << fetched->message;
}

TEST_F(SidecarFaults, FetchesADamagedSegmentAgainAndServesNoWrongByte) {
    start();
    SampleClient client = connect();
    read_all(client, all(), 1);
    damage_segments();
    read_all(client, all(), 2);
    EXPECT_GT(status().counters.corrupt_samples, 0U);
}

TEST_F(SidecarFaults, FindsDamageFromAnOutageAfterAReboot) {
    start();
    {
        SampleClient client = connect();
        read_all(client, all(), 1);
    }
    stop();
    damage_segments();
    boot_id = "boot-2";
    // The store was closed cleanly and checks nothing; the reader's checksum finds the damage.
    start();
    SampleClient client = connect();
    read_all(client, all(), 2);
}

TEST_F(SidecarFaults, ReplacesANodeDirectoryOfAnotherVersion) {
    start();
    {
        SampleClient client = connect();
        read_all(client, all(), 1);
    }
    stop();
    for (const auto& path : segments()) {
        std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
        file.seekp(8);
        file.put(99);  // the format version
    }
    start();
    SampleClient client = connect();
    read_all(client, all(), 2);
    EXPECT_EQ(origin->fetches(), 200U);
}

TEST_F(SidecarFaults, RepairsATruncatedNodeDirectory) {
    start();
    {
        SampleClient client = connect();
        read_all(client, all(), 1);
    }
    stop();
    for (const auto& path : segments()) {
        std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    }
    for (const auto& entry : std::filesystem::directory_iterator{config.datasets[0].directory}) {
        if (entry.path().filename().string().starts_with("manifest.")) {
            std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
        }
    }
    start();
    SampleClient client = connect();
    read_all(client, all(), 2);
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
