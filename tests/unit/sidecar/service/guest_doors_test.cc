#include "sidecar/service/guest_doors.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

TEST(NamespaceName, IsADnsLabel) {
    for (const char* good : {"a", "team-a", "0", "x1-2-3"}) {
        EXPECT_TRUE(is_namespace_name(good)) << good;
    }
    const std::string longest(63, 'a');
    EXPECT_TRUE(is_namespace_name(longest));
    for (const char* bad : {"", "-a", "a-", ".", "..", "A", "a.b", "a/b", "a_b", "a b"}) {
        EXPECT_FALSE(is_namespace_name(bad)) << bad;
    }
    EXPECT_FALSE(is_namespace_name(longest + "a"));
}

class GuestDoorsTest : public testing::Test {
protected:
    [[nodiscard]] std::string folder() const { return folder_.path() + "/guests"; }

    [[nodiscard]] std::string socket(const std::string& name) const {
        return folder() + "/" + name + "/leader.sock";
    }

    void make(const std::string& name) {
        std::filesystem::create_directories(folder() + "/" + name);
    }

    void open(GuestDoors::Limits limits = {}) {
        doors_ = std::make_unique<GuestDoors>(
            loop_,
            ids_,
            folder(),
            [](const local::Hello&) -> Result<SessionHandler*> {
                return fail(ErrorCode::kUnavailable, "no leader");
            },
            limits);
    }

    // Opens `count` connections to a guest socket; returns the sessions of all guest sockets.
    std::size_t connect(const std::string& name, int count) {
        for (int i = 0; i < count; ++i) {
            auto client = connect_unix(socket(name));
            EXPECT_TRUE(client.has_value());
            clients_.push_back(*std::move(client));
        }
        std::size_t sessions = 0;
        for (int quiet = 0; quiet < 5;) {
            loop_.step(std::chrono::milliseconds{1});
            const std::size_t now = doors_->session_count();
            quiet = now == sessions ? quiet + 1 : 0;
            sessions = now;
        }
        return sessions;
    }

    std::vector<UniqueFd> clients_;

    template <class Condition>
    [[nodiscard]] bool eventually(Condition condition) {
        for (int turn = 0; turn < 2000 && !condition(); ++turn) {
            loop_.step(std::chrono::milliseconds{5});
        }
        return condition();
    }

    test::TempFolder folder_;
    SystemClock clock_;
    EventLoop loop_{clock_};
    ConnectionIds ids_;
    std::unique_ptr<GuestDoors> doors_;
};

TEST_F(GuestDoorsTest, OpensASocketInEachFolderAtOnce) {
    make("team-a");
    make("team-b");
    open();
    EXPECT_EQ(doors_->size(), 2U);

    struct stat status {};

    ASSERT_EQ(::stat(socket("team-a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0666U);
}

TEST_F(GuestDoorsTest, FollowsAddedAndRemovedFolders) {
    open();
    EXPECT_EQ(doors_->size(), 0U);
    make("team-a");
    ASSERT_TRUE(eventually([this] { return doors_->size() == 1; }));
    ASSERT_EQ(connect("team-a", 2), 2U);
    std::filesystem::remove_all(folder() + "/team-a");
    ASSERT_TRUE(eventually([this] { return doors_->size() == 0; }));
    EXPECT_EQ(doors_->session_count(), 0U);
    for (const UniqueFd& client : clients_) {
        char byte{};
        EXPECT_EQ(::recv(client.get(), &byte, 1, MSG_DONTWAIT), 0) << "its guests are cut off";
    }
}

TEST_F(GuestDoorsTest, ReopensTheSocketInARecreatedFolder) {
    make("team-a");
    open();
    make("other");  // takes the inode that a new folder would get
    std::filesystem::rename(folder() + "/team-a", folder_.path() + "/old");
    make("team-a");
    EXPECT_TRUE(eventually([this] { return std::filesystem::exists(socket("team-a")); }));
}

TEST_F(GuestDoorsTest, SkipsLinksFilesAndInvalidNames) {
    make("Team_A");
    std::filesystem::create_directories(folder_.path() + "/elsewhere");
    std::filesystem::create_directory_symlink(folder_.path() + "/elsewhere", folder() + "/link");
    std::ofstream{folder() + "/file"} << "x";
    open();
    EXPECT_EQ(doors_->size(), 0U);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/elsewhere"));
}

TEST_F(GuestDoorsTest, LimitsTheNumberOfSockets) {
    for (int number = 0; number < 300; ++number) {
        make("team-" + std::to_string(number));
    }
    open();
    EXPECT_EQ(doors_->size(), GuestDoors::kDoorsMax);
}

TEST_F(GuestDoorsTest, LimitsTheTotalNumberOfSessions) {
    for (const char* name : {"team-a", "team-b", "team-c"}) {
        make(name);
    }
    open({.sessions = 40});
    EXPECT_EQ(connect("team-a", 60), 30U) << "the last quarter is for doors with few";
    EXPECT_EQ(connect("team-b", 8), 38U);
    EXPECT_EQ(connect("team-c", 8), 40U);
    clients_.clear();
    ASSERT_TRUE(eventually([this] { return doors_->session_count() == 0; }));
    EXPECT_EQ(connect("team-c", 5), 5U) << "places come back";
}

TEST(GuestDoorsLimits, GrowWithTheDescriptorLimitOfTheProcess) {
    EXPECT_EQ(GuestDoors::Limits::of(1024).sessions, 64U);
    EXPECT_EQ(GuestDoors::Limits::of(32768).sessions, 2048U);
    EXPECT_EQ(GuestDoors::Limits::of(1U << 20U).sessions, 4096U);
    EXPECT_EQ(GuestDoors::Limits::of(UINT64_MAX).sessions, 4096U) << "no limit";
}

TEST_F(GuestDoorsTest, RemovesItsSocketsAtTheEnd) {
    make("team-a");
    open();
    doors_.reset();
    EXPECT_FALSE(std::filesystem::exists(socket("team-a")));
}

}  // namespace
}  // namespace stoker::sidecar
