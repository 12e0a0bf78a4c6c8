#include "node/service/file_mounts.h"

#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "proto/files/hand_over.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/node/service/fakes.h"

namespace stoker::node {
namespace {

namespace fs = std::filesystem;
using files::HandOver;
using files::HandOverKind;

constexpr int kPatienceMs = 60'000;

// A stoker-files.
class Server {
public:
    explicit Server(const fs::path& socket) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket.string().copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(
            ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }

    void say(HandOver message, int descriptor = -1) {
        EXPECT_TRUE(files::send_hand_over(socket_.get(), message, descriptor));
    }

    // Waits; false: the other side has hung up.
    bool take() {
        pollfd wait{socket_.get(), POLLIN, 0};
        EXPECT_EQ(::poll(&wait, 1, kPatienceMs), 1);
        auto received = files::receive_hand_over(socket_.get(), true);
        if (received) {
            last_ = *std::move(received);
        }
        return received.has_value();
    }

    // Whether a message waits within 100 ms.
    bool has_message() {
        pollfd wait{socket_.get(), POLLIN, 0};
        return ::poll(&wait, 1, 100) == 1;
    }

    files::ReceivedHandOver last_;

private:
    UniqueFd socket_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
};

class FileMountsTest : public ::testing::Test {
protected:
    static ViewRequest request(View view, const std::string& pod) {
        ViewRequest result;
        result.view = view;
        result.pod = {"team", pod, pod};
        result.directory = {"team", "d1"};
        return result;
    }

    Status publish(View view, const std::string& target, const std::string& pod = "p1") {
        return files_->publish(request(view, pod), target);
    }

    fs::path socket(const std::string& pod = "p1") const {
        return top_ / (pod + ".d1") / "socket" / files::kHandOverSocket;
    }

    void start() {
        files_ = std::make_unique<FileMounts>(
            top_.string(), SidecarUser{::geteuid(), ::getegid()}, mounts_, clock_);
        files_->restore();
    }

    void SetUp() override { start(); }

    SystemClock clock_;
    stoker::test::TempFolder folder_;
    fs::path top_ = fs::path{folder_.path()} / "f";
    test::FakeMounts mounts_;
    std::unique_ptr<FileMounts> files_;
};

TEST_F(FileMountsTest, HandsAMountToItsOwnPodOnly) {
    ASSERT_TRUE(publish(View::kFilesServer, "/server"));
    Server early{socket()};
    early.say({HandOverKind::kHello, 0});
    EXPECT_FALSE(early.has_message()) << "there is no mount yet";
    ASSERT_TRUE(publish(View::kFilesServer, "/server2", "p2"));
    Server other{socket("p2")};
    other.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    ASSERT_TRUE(early.take());
    EXPECT_EQ(early.last_.message, (HandOver{HandOverKind::kMount, 0}));
    EXPECT_TRUE(files::is_fuse_connection(early.last_.descriptor.get()));
    EXPECT_FALSE(other.has_message());
}

TEST_F(FileMountsTest, OnlyTheSidecarsUserReachesTheSocket) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));

    struct stat status {};

    ASSERT_EQ(::stat(socket().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    ASSERT_EQ(::stat(socket().parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(FileMountsTest, TheNextServerGetsTheMountWithItsRevision) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    {
        Server first{socket()};
        first.say({HandOverKind::kHello, 0});
        ASSERT_TRUE(first.take());
        first.say({HandOverKind::kShows, 42});
        first.say({HandOverKind::kHello, 42});
        ASSERT_TRUE(first.take()) << "so the message before it has arrived, too";
    }
    ASSERT_TRUE(publish(View::kFiles, "/files")) << "the kubelet started again";
    Server second{socket()};
    second.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(second.take());
    EXPECT_EQ(second.last_.message, (HandOver{HandOverKind::kMount, 42}));
    EXPECT_TRUE(second.last_.descriptor.valid());
}

TEST_F(FileMountsTest, GetsTheMountBackAfterARestart) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    Server server{socket()};
    server.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(server.take());
    const UniqueFd mount = std::move(server.last_.descriptor);
    files_.reset();
    start();
    Server lost{socket()};
    lost.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(lost.take());
    EXPECT_EQ(lost.last_.message.kind, HandOverKind::kLost);
    Server again{socket()};
    again.say({HandOverKind::kHello, 7}, mount.get());
    ASSERT_TRUE(again.take());
    EXPECT_EQ(again.last_.message, (HandOver{HandOverKind::kKept, 7}));
    Server next{socket()};
    next.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(next.take());
    EXPECT_EQ(next.last_.message, (HandOver{HandOverKind::kMount, 7}));
}

TEST_F(FileMountsTest, ClosesStrangers) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    Server stranger{socket()};
    stranger.say({HandOverKind::kMount, 1});
    EXPECT_FALSE(stranger.take());
    std::vector<std::unique_ptr<Server>> crowd;
    for (int at = 0; at < 20; ++at) {
        crowd.push_back(std::make_unique<Server>(socket()));
    }
    crowd.back()->say({HandOverKind::kHello, 0});
    EXPECT_TRUE(crowd.back()->take());
    EXPECT_FALSE(crowd.front()->take()) << "it made room";
}

TEST_F(FileMountsTest, KeepsNoDescriptorThatIsNoMount) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    files_.reset();
    start();
    const UniqueFd file{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    Server stranger{socket()};
    stranger.say({HandOverKind::kHello, 1}, file.get());
    ASSERT_TRUE(stranger.take());
    EXPECT_EQ(stranger.last_.message.kind, HandOverKind::kLost);
}

TEST_F(FileMountsTest, OneVolumeShowsADataset) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    EXPECT_EQ(publish(View::kFiles, "/again").error().code, ErrorCode::kAlreadyExists);
    EXPECT_TRUE(publish(View::kFiles, "/again", "p2"));
}

TEST_F(FileMountsTest, NothingIsLeftOnceBothVolumesAreGone) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    ASSERT_TRUE(publish(View::kFilesServer, "/server"));
    ASSERT_TRUE(files_->unpublish("/other"));
    ASSERT_TRUE(files_->unpublish("/files"));
    EXPECT_TRUE(fs::exists(socket()));
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(files_->unpublish("/server"));
        EXPECT_TRUE(fs::is_empty(top_));
    }
}

}  // namespace
}  // namespace stoker::node
