// The real program, as a user starts it: killed, stopped, misconfigured, on a full disk.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "tests/integration/sidecar_program_fixture.h"
#include "tests/support/dataset.h"

namespace stoker::test {
namespace {

class SidecarProgram : public SidecarProgramTest {
protected:
    SidecarProgram() {
        std::filesystem::create_directories(folder.path() + "/origin");
        for (std::uint64_t id = 0; id < data.manifest().sample_count(); ++id) {
            const auto info = data.manifest().sample(domain::SampleId{id});
            const auto path =
                std::filesystem::path{folder.path() + "/origin"} / std::string{info.key};
            std::filesystem::create_directories(path.parent_path());
            const auto payload = data.payload(domain::SampleId{id});
            std::ofstream{path, std::ios::binary}.write(
                reinterpret_cast<const char*>(payload.data()),
                static_cast<std::streamsize>(payload.size()));
        }
    }

    std::unique_ptr<SidecarProcess> run(const std::string& name, const std::string& more = "") {
        return run_with_origin(
            fmt::format("{{uri: 'file://{}/origin'}}", folder.path()), name, more);
    }

    // Reads every sample once through the sidecar. Returns how many of them it referred to the
    // origin.
    std::uint64_t read_all(SampleClient& client, const std::vector<std::uint64_t>& ids) {
        std::uint64_t bypassed = 0;
        for (const std::uint64_t id : ids) {
            const auto bytes = client.get(id);
            if (!bytes && bytes.error().code == ErrorCode::kResourceExhausted) {
                ++bypassed;
                continue;
            }
            EXPECT_TRUE(bytes.has_value()) << "sample " << id << ": " << bytes.error().message;
            if (!bytes) {
                return bypassed;
            }
            EXPECT_EQ(*bytes, data.payload(domain::SampleId{id})) << "sample " << id;
            client.consumed(1, {id});
        }
        return bypassed;
    }

    [[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t seed) const {
        std::vector<std::uint64_t> ids(data.manifest().sample_count());
        std::iota(ids.begin(), ids.end(), 0U);
        Prng prng{seed};
        std::shuffle(ids.begin(), ids.end(), prng);
        return ids;
    }

    Dataset data = Dataset::random(400, 60000, 5);
};

TEST_F(SidecarProgram, ExitsWithZeroWhenIdle) {
    const auto sidecar = run("one", "endWhenIdle: 2s\n");
    {
        SampleClient client = connect("one");
        read_all(client, shuffled(1));
        EXPECT_FALSE(sidecar->ends_within(std::chrono::seconds{4})) << "in use";
    }
    EXPECT_TRUE(sidecar->ends_within(kPatience));
    EXPECT_EQ(sidecar->stop(), 0);
}

TEST_F(SidecarProgram, ServesAndExitsWithZeroOnSigterm) {
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    EXPECT_EQ(read_all(client, shuffled(1)), 0U);
    EXPECT_EQ(sidecar->stop(), 0);
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/one.sock"));
    EXPECT_FALSE(std::filesystem::exists(node_directory + "/control/leader.sock"));
}

TEST_F(SidecarProgram, FollowerTakesOverWithinOneSecond) {
    // No residents: in each round samples must come through the current leader.
    const std::string window_only = "  grant: 0\n  window: 2Mi\n";
    const auto order = shuffled(2);
    for (int round = 0; round < 5; ++round) {
        auto leader = run("leader", window_only);
        connect("leader").close();
        auto follower = run("follower", window_only);
        SampleClient client = connect("follower", 3);
        ASSERT_TRUE(client.plan(1, order).has_value());
        const auto middle = order.begin() + 100 + 40 * round;
        read_all(client, {order.begin(), middle});
        leader->kill();
        const SystemClock clock;
        const TimePoint killed = clock.now();
        // The plan's last sample is far outside the window and must be fetched.
        const auto bytes = client.get(order.back());
        const auto taken = clock.now() - killed;
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message << log_of("follower");
        std::printf(
            "first fetch after the leader's death: %lld ms\n",
            static_cast<long long>(taken / std::chrono::milliseconds{1}));
        EXPECT_LT(taken, std::chrono::seconds{20});  // the target is 1 s; machines are busy
        EXPECT_EQ(read_all(client, {middle, order.end()}), 0U);
        EXPECT_EQ(follower->stop(), 0);
        std::filesystem::remove_all(node_directory);
    }
}

TEST_F(SidecarProgram, ResidentsSurviveAKilledSidecar) {
    auto sidecar = run("one");
    {
        SampleClient client = connect("one");
        read_all(client, shuffled(1));
    }
    sidecar->kill();
    sidecar = run("one");
    SampleClient client = connect("one");
    for (const std::uint64_t id : shuffled(3)) {
        const auto bytes = client.read(id);
        ASSERT_TRUE(bytes && bytes->has_value()) << "sample " << id << " was lost";
        EXPECT_EQ(**bytes, data.payload(domain::SampleId{id}));
    }
}

TEST_F(SidecarProgram, ReportsAllErrorsOfItsSettings) {
    const std::string path = folder.path() + "/bad.yaml";
    std::ofstream{path} << "sokcet: /tmp/x\ndatasets:\n- name: train\n  window: lots\n";
    const std::string command =
        fmt::format("{} --config {} 2>{}/bad.log", STOKER_SIDECAR_BINARY, path, folder.path());
    EXPECT_NE(std::system(command.c_str()), 0);
    const std::string log = log_of("bad");
    for (const char* words : {"sokcet", "datasets[0].window", "datasets[0].origin"}) {
        EXPECT_NE(log.find(words), std::string::npos) << log;
    }
}

// A file system of 8 MiB for the node directory.
class SidecarOnASmallDisk : public SidecarProgram {
protected:
    void SetUp() override {
        std::filesystem::create_directories(node_directory);
        mounted_ = ::mount("tmpfs", node_directory.c_str(), "tmpfs", 0, "size=8m") == 0;
    }

    void TearDown() override {
        if (mounted_) {
            ::umount2(node_directory.c_str(), MNT_DETACH);
        }
    }

    bool mounted_ = false;
};

TEST_F(SidecarOnASmallDisk, ServesEverySampleWithoutFillingTheReserve) {
    if (!mounted_) {
        std::printf("not run: mounting a file system needs root\n");
        return;
    }
    auto sidecar = run("one", "  window: 2Mi\n");
    SampleClient client = connect("one", 4);
    const auto order = shuffled(1);
    for (int epoch = 0; epoch < 2; ++epoch) {
        ASSERT_TRUE(client.plan(1, order).has_value());
        const std::uint64_t bypassed = read_all(client, order);
        std::printf(
            "sent to the origin in epoch %d: %llu of 400\n",
            epoch,
            static_cast<unsigned long long>(bypassed));
        EXPECT_LT(bypassed, 400U);
    }
    EXPECT_EQ(sidecar->stop(), 0);
}

}  // namespace
}  // namespace stoker::test
