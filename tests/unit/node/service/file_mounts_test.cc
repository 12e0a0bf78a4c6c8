#include "node/service/file_mounts.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
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

// Acts as a pod's stoker-files.
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

    // Waits for a message; false: the other side has hung up.
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
    static ViewRequest request(View view, const std::string& pod, const std::string& dataset) {
        ViewRequest result;
        result.view = view;
        result.pod = {"team", pod, pod};
        result.directory = {"team", dataset};
        return result;
    }

    Status publish(
        View view,
        const std::string& target,
        const std::string& pod = "p1",
        const std::string& dataset = "d1") {
        return files_->publish(request(view, pod, dataset), target);
    }

    fs::path socket(const std::string& pod = "p1") const {
        return top_ / (pod + ".d1") / "socket" / files::kHandOverSocket;
    }

    void start(Duration patience = FileMounts::kPatience) {
        files_ = std::make_unique<FileMounts>(
            top_.string(), SidecarUser{::geteuid(), ::getegid()}, mounts_, patience);
        files_->restore();
    }

    // Starts another process of the node program.
    void restart() {
        files_.reset();
        start();
    }

    void SetUp() override { start(); }

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
    restart();
    Server again{socket()};
    again.say({HandOverKind::kHello, 7}, mount.get());
    ASSERT_TRUE(again.take());
    EXPECT_EQ(again.last_.message, (HandOver{HandOverKind::kKept, 7}));
    Server next{socket()};
    next.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(next.take());
    EXPECT_EQ(next.last_.message, (HandOver{HandOverKind::kMount, 7}));
}

TEST_F(FileMountsTest, MountsAgainIfNoProcessHoldsTheMount) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    restart();
    for (const std::uint64_t revision : {0, 3}) {
        Server server{socket()};
        server.say({HandOverKind::kHello, 0});
        ASSERT_TRUE(server.take());
        EXPECT_EQ(server.last_.message, (HandOver{HandOverKind::kMount, revision}));
        EXPECT_TRUE(files::is_fuse_connection(server.last_.descriptor.get()));
        server.say({HandOverKind::kShows, 3});
        server.say({HandOverKind::kHello, 3});
        ASSERT_TRUE(server.take()) << "so the message before it has arrived, too";
    }
    mounts_.failure = Error{ErrorCode::kUnavailable, "no device"};
    restart();
    Server server{socket()};
    server.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(server.take());
    EXPECT_EQ(server.last_.message.kind, HandOverKind::kLost);
}

TEST_F(FileMountsTest, KeepsTheRevisionThatAServersHelloReports) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    Server first{socket()};
    for (const std::uint64_t revision : {0, 9}) {
        first.say({HandOverKind::kHello, revision});
        ASSERT_TRUE(first.take());
    }
    Server second{socket()};
    second.say({HandOverKind::kHello, 0});
    ASSERT_TRUE(second.take());
    EXPECT_EQ(second.last_.message, (HandOver{HandOverKind::kMount, 9}));
}

TEST_F(FileMountsTest, GivesUpAMountThatNobodyServes) {
    files_.reset();
    start(std::chrono::milliseconds{50});
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    auto server = std::make_unique<Server>(socket());
    for (const std::uint64_t revision : {0, 5}) {
        server->say({HandOverKind::kHello, revision});
        ASSERT_TRUE(server->take());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{150});  // longer than the patience
    auto next = std::make_unique<Server>(socket());
    next->say({HandOverKind::kHello, 0});
    ASSERT_TRUE(next->take());
    EXPECT_EQ(next->last_.message.revision, 5U) << "a connection keeps the mount";
    server.reset();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (next->last_.message.revision != 0 && std::chrono::steady_clock::now() < limit) {
        next.reset();
        std::this_thread::sleep_for(std::chrono::milliseconds{150});
        next = std::make_unique<Server>(socket());
        next->say({HandOverKind::kHello, 0});
        ASSERT_TRUE(next->take());
    }
    EXPECT_EQ(next->last_.message, (HandOver{HandOverKind::kMount, 0})) << "a mount of its own";
}

TEST_F(FileMountsTest, ClosesConnectionsWithoutAHelloAndTheOldestOfTooMany) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    Server stranger{socket()};
    stranger.say({HandOverKind::kMount, 1});
    EXPECT_FALSE(stranger.take() && stranger.take()) << "the mount may have come before";
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
    restart();
    const UniqueFd file{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    Server stranger{socket()};
    stranger.say({HandOverKind::kHello, 1}, file.get());
    ASSERT_TRUE(stranger.take());
    EXPECT_EQ(stranger.last_.message.kind, HandOverKind::kLost);
}

TEST_F(FileMountsTest, TakesNoDescriptorForFilesThatAreNotMounted) {
    ASSERT_TRUE(publish(View::kFilesServer, "/server"));
    const UniqueFd device{::open("/dev/fuse", O_RDWR | O_CLOEXEC)};
    Server stranger{socket()};
    stranger.say({HandOverKind::kHello, 1}, device.get());
    EXPECT_FALSE(stranger.has_message());
}

// A TCP socket whose close() waits for a peer that reads nothing.
class LingeringSocket {
public:
    LingeringSocket() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
        EXPECT_EQ(::listen(listener_.get(), 1), 0);
        EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
        EXPECT_EQ(::connect(near_.get(), generic, size), 0);
        const linger wait{1, 300};
        EXPECT_EQ(::setsockopt(near_.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
        const std::string bytes(1 << 20U, 'x');
        while (::send(near_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
        }
    }

    // Sends the socket to the server and closes our descriptor of it: the process that closes the
    // last descriptor waits in close().
    void send_to(Server& server) {
        server.say({HandOverKind::kHello, 1}, near_.get());
        near_.reset();
    }

private:
    UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    UniqueFd near_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST_F(FileMountsTest, ADescriptorThatCannotBeClosedDelaysOnlyItsOwnSession) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    std::promise<void> gate;
    mounts_.before_files = [wait = gate.get_future().share()] { wait.wait(); };
    restart();
    Server stranger{socket()};
    stranger.say({HandOverKind::kHello, 0});
    LingeringSocket lingering;
    lingering.send_to(stranger);  // waits in the queue, because the hello's answer waits
    gate.set_value();
    ASSERT_TRUE(stranger.take());
    EXPECT_FALSE(stranger.has_message()) << "the session is stuck";
    ASSERT_TRUE(publish(View::kFiles, "/files2", "p2"));
    Server other{socket("p2")};
    other.say({HandOverKind::kHello, 0});
    EXPECT_TRUE(other.take());
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    ASSERT_TRUE(files_->unpublish("/files"));
    ASSERT_TRUE(files_->unpublish("/files2"));
    EXPECT_TRUE(fs::is_empty(top_));
}

TEST_F(FileMountsTest, OneVolumeShowsADataset) {
    ASSERT_TRUE(publish(View::kFiles, "/files"));
    EXPECT_EQ(publish(View::kFiles, "/again").error().code, ErrorCode::kAlreadyExists);
    EXPECT_TRUE(publish(View::kFiles, "/again", "p2"));
}

TEST_F(FileMountsTest, NothingIsLeftAfterTheTrainersAndTheServersVolumeAreUnpublished) {
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

TEST_F(FileMountsTest, AnUnreadableSessionStopsNoOther) {
    ASSERT_TRUE(publish(View::kFilesServer, "/server"));
    fs::create_directories(top_ / "a.bad" / "files");
    std::ofstream{top_ / "stray"} << "text";
    ASSERT_TRUE(files_->unpublish("/server"));
    EXPECT_FALSE(fs::exists(socket()));
}

TEST_F(FileMountsTest, FailsToForgetIfItCannotListItsSessions) {
    std::ofstream{top_} << "no folder";
    EXPECT_FALSE(files_->unpublish("/server"));
}

TEST_F(FileMountsTest, RemovesSessionsWithoutVolumes) {
    ASSERT_TRUE(publish(View::kFilesServer, "/server"));
    fs::create_directories(top_ / "p2.d1" / "socket");
    restart();
    EXPECT_FALSE(fs::exists(top_ / "p2.d1"));
    EXPECT_TRUE(fs::exists(socket()));
}

TEST_F(FileMountsTest, APodHasAFewSessionsOnly) {
    for (std::size_t at = 0; at < FileMounts::kSessionsOfAPodMax; ++at) {
        ASSERT_TRUE(
            publish(View::kFilesServer, fmt::format("/{}", at), "p1", fmt::format("d{}", at)));
    }
    EXPECT_EQ(
        publish(View::kFilesServer, "/more", "p1", "more").error().code,
        ErrorCode::kResourceExhausted);
    EXPECT_FALSE(fs::exists(top_ / "p1.more"));
    EXPECT_TRUE(publish(View::kFilesServer, "/other", "p11", "d1"));
}

}  // namespace
}  // namespace stoker::node
