#include "sidecar/service/unix_listener.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/accept_backoff.h"
#include "common/base/clock.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

// A client that waits for the socket's name may connect as soon as it is there.
TEST(UnixListener, AcceptsAsSoonAsItsNameExists) {
    const test::TempFolder folder;
    const std::string path = folder.path() + "/s.sock";
    const SystemClock clock;
    EventLoop loop{clock};
    std::atomic<bool> done = false;
    std::string refused;
    std::thread client{[&] {
        while (!done) {
            const auto socket = connect_unix(path);
            if (!socket && socket.error().message.find("refused") != std::string::npos) {
                refused = socket.error().message;
            }
        }
    }};
    // All listeners live to the end: a client may have found the name just before it was renamed.
    std::vector<std::unique_ptr<UnixListener>> listeners;
    for (int round = 0; round < 300; ++round) {
        auto listener = UnixListener::listen(loop, path, 0600, [](UniqueFd, const auto&) {});
        ASSERT_TRUE(listener.has_value()) << listener.error().message;
        listeners.push_back(*std::move(listener));
        std::filesystem::rename(path, path + ".gone");
    }
    done = true;
    client.join();
    EXPECT_EQ(refused, "");
}

TEST(UnixListener, ReplacesTheSocketOfADeadListener) {
    const test::TempFolder folder;
    const std::string path = folder.path() + "/s.sock";
    const SystemClock clock;
    EventLoop loop{clock};
    const auto ignore = [](UniqueFd, const ProcessCredentials&) {};
    {
        const auto dead = UnixListener::listen(loop, path, 0600, ignore);
        ASSERT_TRUE(dead.has_value());
        std::filesystem::rename(path, path + ".kept");
    }
    std::filesystem::rename(path + ".kept", path);  // as after a SIGKILL: a name without a listener
    EXPECT_FALSE(connect_unix(path).has_value());
    const auto next = UnixListener::listen(loop, path, 0600, ignore);
    ASSERT_TRUE(next.has_value()) << next.error().message;
    EXPECT_TRUE(connect_unix(path).has_value());
}

// The lowest free descriptor number.
int next_descriptor() {
    const UniqueFd probe{::dup(0)};
    return probe.get();
}

void allow_descriptors(rlim_t count) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Runs in its own process, which exhausts its descriptors. 0: success.
int accept_without_descriptors(const std::string& path) {
    stoker::testing::ManualClock clock;
    EventLoop loop{clock};
    int accepted = 0;
    const auto listener =
        UnixListener::listen(loop, path, 0600, [&](UniqueFd, const auto&) { ++accepted; });
    const auto client = connect_unix(path);
    const auto wait = [&loop](int steps) {
        while (steps-- > 0) {
            loop.step(Duration::zero());
        }
    };
    allow_descriptors(static_cast<rlim_t>(next_descriptor()));
    wait(100);
    if (AcceptBackoff::failures() != 1) {
        return 1;  // the loop spins
    }
    clock.advance(std::chrono::milliseconds{10});
    wait(100);
    if (AcceptBackoff::failures() != 2 || accepted != 0) {
        return 2;
    }
    allow_descriptors(256);
    clock.advance(std::chrono::seconds{1});
    wait(100);
    return accepted == 1 && AcceptBackoff::failures() == 2 ? 0 : 3;
}

TEST(UnixListenerDeathTest, PausesWithoutDescriptorsAndContinuesWithThem) {
    const test::TempFolder folder;
    EXPECT_EXIT(
        std::exit(accept_without_descriptors(folder.path() + "/s.sock")),
        ::testing::ExitedWithCode(0),
        "connections cannot be accepted for now.*Too many open files");
}

}  // namespace
}  // namespace stoker::sidecar
