// A leader that exists but does nothing: a real process, stopped by SIGSTOP.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/integration/sidecar_program_fixture.h"

namespace stoker::test {
namespace {

class StoppedLeader : public SidecarProgramTest {
protected:
    StoppedLeader() {
        std::filesystem::create_directories(folder.path() + "/origin");
        for (int file = 0; file < 40; ++file) {
            std::ofstream{fmt::format("{}/origin/{:02}.bin", folder.path(), file)}
                << std::string(1000, static_cast<char>('a' + file % 26));
        }
    }

    std::unique_ptr<SidecarProcess> run(const std::string& name) {
        return run_with_origin(fmt::format("{{uri: 'file://{}/origin'}}", folder.path()), name, "");
    }

    // Waits until the sidecar answers the fetch with this status.
    bool answers(SampleClient& client, std::uint64_t sample, local::FetchStatus status) {
        const SystemClock clock;
        const TimePoint end = clock.now() + kPatience;
        while (clock.now() < end) {
            const auto fetched = client.fetch({sample});
            if (!fetched) {
                return false;
            }
            if (fetched->statuses.at(0) == status) {
                return true;
            }
        }
        return false;
    }
};

TEST_F(StoppedLeader, DelaysAWaitingClientSecondsNotAMinute) {
    const auto leader = run("leader");
    connect("leader").close();
    const auto follower = run("follower");
    SampleClient client = connect("follower", 3);
    ASSERT_TRUE(client.plan(1, {0, 1, 2}).has_value());
    ASSERT_TRUE(client.get(0).has_value());

    leader->pause();
    const SystemClock clock;
    const TimePoint stopped = clock.now();
    const auto fetched = client.fetch({30});
    const auto waited = clock.now() - stopped;
    std::printf(
        "answered %lld ms after the leader was stopped\n",
        static_cast<long long>(waited / std::chrono::milliseconds{1}));
    ASSERT_TRUE(fetched.has_value()) << fetched.error().message << log_of("follower");
    EXPECT_EQ(fetched->statuses.at(0), local::FetchStatus::kReadAtOrigin);
    EXPECT_LT(waited, std::chrono::seconds{20});  // the target is 3 s; machines are busy

    EXPECT_TRUE(client.plan(2, {3, 4, 5}).has_value()) << "a plan needs no leader to be taken";
    client.consumed(2, {3});
    SampleClient late{socket_of("follower")};
    EXPECT_EQ(late.hello("train", 4).error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(client.get(0).has_value()) << "what is resident is read as before";

    leader->resume();
    EXPECT_TRUE(answers(client, 31, local::FetchStatus::kReady)) << log_of("follower");
    EXPECT_TRUE(client.get(31).has_value());
    EXPECT_EQ(follower->stop(), 0);
    EXPECT_EQ(leader->stop(), 0);
}

TEST_F(StoppedLeader, ASlowLeaderIsNotTakenForStopped) {
    const auto leader = run("leader");
    connect("leader").close();
    const auto follower = run("follower");
    SampleClient client = connect("follower", 3);
    // Ten stops, each shorter than the followers' time limit.
    for (std::uint64_t sample = 20; sample < 30; ++sample) {
        leader->pause();
        client.send(local::Fetch{{sample}});
        std::this_thread::sleep_for(std::chrono::milliseconds{100});  // as if it worked
        leader->resume();
        const auto answer = client.receive();
        ASSERT_TRUE(answer.has_value()) << log_of("follower");
        const auto& fetched = std::get<local::Fetched>(answer->message);
        EXPECT_EQ(fetched.statuses.at(0), local::FetchStatus::kReady) << "sample " << sample;
    }
}

}  // namespace
}  // namespace stoker::test
