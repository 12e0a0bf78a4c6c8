#include "sidecar/service/unix_listener.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

// Who waits for a socket's name to appear may connect as soon as it is there.
TEST(UnixListener, AcceptsFromTheMomentInWhichItHasAName) {
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
    for (int round = 0; round < 300; ++round) {
        const auto listener = UnixListener::listen(loop, path, 0600, [](UniqueFd, const auto&) {});
        ASSERT_TRUE(listener.has_value()) << listener.error().message;
        // While it is there; what it leaves behind when it goes is another matter.
        std::filesystem::rename(path, path + ".gone");
    }
    done = true;
    client.join();
    EXPECT_EQ(refused, "");
}

TEST(UnixListener, ReplacesWhatADeadOneHasLeft) {
    const test::TempFolder folder;
    const std::string path = folder.path() + "/s.sock";
    const SystemClock clock;
    EventLoop loop{clock};
    const auto ignore = [](UniqueFd, const PeerCredentials&) {};
    {
        const auto dead = UnixListener::listen(loop, path, 0600, ignore);
        ASSERT_TRUE(dead.has_value());
        std::filesystem::rename(path, path + ".kept");
    }
    std::filesystem::rename(path + ".kept", path);  // as after a SIGKILL: a name, and nobody there
    EXPECT_FALSE(connect_unix(path).has_value());
    const auto next = UnixListener::listen(loop, path, 0600, ignore);
    ASSERT_TRUE(next.has_value()) << next.error().message;
    EXPECT_TRUE(connect_unix(path).has_value());
}

}  // namespace
}  // namespace stoker::sidecar
