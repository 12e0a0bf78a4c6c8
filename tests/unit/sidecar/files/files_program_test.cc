#include "sidecar/files/files_program.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/domain/node_directory.h"
#include "proto/files/hand_over.h"
#include "tests/unit/sidecar/files/files_world.h"

namespace stoker::files {
namespace {

constexpr int kAnswerMs = 10'000;

bool has_input(const UniqueFd& socket) {
    pollfd wait{socket.get(), POLLIN, 0};
    return ::poll(&wait, 1, kAnswerMs) == 1;
}

// Plays the node program and the kernel's end of the mount to a stoker-files without a sidecar.
class FilesProgramTest : public ::testing::Test {
protected:
    FilesProgramTest() {
        listener_ = UniqueFd{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket_path_.copy(address.sun_path, sizeof address.sun_path - 1);
        const auto* at = reinterpret_cast<const sockaddr*>(&address);
        EXPECT_EQ(::bind(listener_.get(), at, sizeof address), 0);
        EXPECT_EQ(::listen(listener_.get(), 1), 0);
        config_.socket_path = folder_.path() + "/no-sidecar";
        config_.datasets.resize(1);
        config_.datasets[0].name = "data";
        config_.datasets[0].source.uri = "file://" + folder_.path();
        config_.datasets[0].directory = folder_.path();
        config_.datasets[0].files_socket = socket_path_;
    }

    // Starts stoker-files and hands it a mount that has shown this revision.
    void start(std::uint64_t revision) {
        const auto no_environment = [](const char*) -> const char* { return nullptr; };
        program_ = FilesProgram::start(config_, no_environment, clock_, {}).value();
        node_ = UniqueFd{::accept(listener_.get(), nullptr, nullptr)};
        ASSERT_TRUE(has_input(node_));
        EXPECT_EQ(receive_hand_over(node_.get(), true).value().message.kind, HandOverKind::kHello);
        std::array<int, 2> ends{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        kernel_ = UniqueFd{ends[0]};
        const UniqueFd mount{ends[1]};
        EXPECT_TRUE(send_hand_over(node_.get(), {HandOverKind::kMount, revision}, mount.get()));
        EXPECT_EQ(answer(), 0) << "the notice";
    }

    // The error number of the next answer; -1: no answer came.
    int answer() const {
        fuse_out_header head{};
        if (!has_input(kernel_)) {
            return -1;
        }
        std::array<std::byte, 4096> bytes{};
        EXPECT_GE(
            ::read(kernel_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(sizeof head));
        std::memcpy(&head, bytes.data(), sizeof head);
        return head.unique == 0 ? 0 : -head.error;
    }

    // Looks up the file "a".
    int lookup() const {
        struct {
            fuse_in_header head;
            std::array<char, 2> name;
        } request{};

        request.head.len = sizeof request.head + sizeof request.name;
        request.head.opcode = FUSE_LOOKUP;
        request.head.unique = 42;
        request.head.nodeid = FUSE_ROOT_ID;
        request.name = {'a', '\0'};
        EXPECT_GT(::write(kernel_.get(), &request, request.head.len), 0);
        return answer();
    }

    // Writes a manifest with the file "a".
    domain::RevisionId list() const {
        const std::string data = domain::data_folder(folder_.path());
        std::filesystem::create_directory(data);
        return test::NodeDirectory{data, {{"a", 5, "e"}}}.revision();
    }

    SystemClock clock_;
    test::TempFolder folder_;
    std::string socket_path_ = folder_.path() + "/files.sock";
    sidecar::SidecarConfig config_;
    UniqueFd listener_;
    UniqueFd node_;
    UniqueFd kernel_;
    std::unique_ptr<FilesProgram> program_;
};

TEST_F(FilesProgramTest, ShowsTheRevisionThatTheMountHasShownBefore) {
    const std::uint64_t revision = list().value();
    start(revision);
    EXPECT_EQ(lookup(), 0);
    ASSERT_TRUE(has_input(node_));
    const HandOver told = receive_hand_over(node_.get(), true).value().message;
    EXPECT_EQ(told, (HandOver{HandOverKind::kShows, revision}));
}

TEST_F(FilesProgramTest, FilesOfARevisionThatIsGoneFail) {
    const std::uint64_t revision = list().value();
    std::filesystem::remove_all(domain::data_folder(folder_.path()));
    start(revision);
    EXPECT_EQ(lookup(), EIO);
    list();
    int error = EIO;
    for (int round = 0; round < 100 && error == EIO; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
        error = lookup();
    }
    EXPECT_EQ(error, 0) << "it came back";
}

}  // namespace
}  // namespace stoker::files
