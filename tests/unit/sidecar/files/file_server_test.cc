#include "sidecar/files/file_server.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/sidecar/files/files_world.h"
#include "tests/unit/sidecar/files/fuse_request.h"

namespace stoker::files {
namespace {

constexpr std::uint64_t kUnique = 42;
constexpr std::uint64_t kSampleBytes = 100'000;
constexpr int kAnswerMs = 5000;
constexpr int kQuietMs = 50;

template <class T>
std::vector<std::byte> request(std::uint32_t opcode, std::uint64_t unique, const T& body) {
    return fuse_request(opcode, unique, FUSE_ROOT_ID, body);
}

std::vector<std::byte> lookup(std::uint64_t unique) {
    return request(FUSE_LOOKUP, unique, std::array{'a', '\0'});
}

std::vector<std::byte> interrupt(std::uint64_t unique) {
    return request(FUSE_INTERRUPT, unique + 1, fuse_interrupt_in{unique});
}

// A server at a socket whose other end is the kernel's.
class FileServerTest : public ::testing::Test {
protected:
    FileServerTest() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        kernel_ = UniqueFd{ends[0]};
        server_.emplace(
            UniqueFd{ends[1]}, FileServer::Parts{data_.cached, origin_, *pool_, clock_, 0}, 1);
        EXPECT_TRUE(reply(kAnswerMs)) << "the notice";
    }

    ~FileServerTest() override {
        server_->stop();
        pool_.reset();
    }

    void send(const std::vector<std::byte>& bytes) const {
        EXPECT_EQ(
            ::write(kernel_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    }

    // Receives a reply. nullopt: none came.
    std::optional<fuse_out_header> reply(int wait_ms) const {
        pollfd wait{kernel_.get(), POLLIN, 0};
        std::array<std::byte, 4096> bytes{};
        if (::poll(&wait, 1, wait_ms) != 1 || ::read(kernel_.get(), &bytes, bytes.size()) <= 0) {
            return std::nullopt;
        }
        fuse_out_header head{};
        std::memcpy(&head, bytes.data(), sizeof head);
        return head;
    }

    void expect_error(std::uint64_t unique, int error) const {
        const auto head = reply(kAnswerMs);
        ASSERT_TRUE(head);
        EXPECT_EQ(head->unique, unique);
        EXPECT_EQ(head->error, -error);
    }

    SystemClock clock_;
    std::string socket_path_ = "/nowhere";
    LocalDataset data_{{{"a", kSampleBytes, "e"}}, false};
    EmptyOrigin origin_;
    std::optional<attached::FetchPool> pool_{std::in_place, socket_path_, clock_, 0};
    UniqueFd kernel_;
    std::optional<FileServer> server_;
};

TEST_F(FileServerTest, AnInterruptEndsARequestThatWaitsForTheFiles) {
    send(lookup(kUnique));
    send(interrupt(kUnique));
    expect_error(kUnique, EINTR);
}

TEST_F(FileServerTest, AnInterruptMayComeBeforeItsRequest) {
    send(interrupt(kUnique));
    send(lookup(kUnique));
    expect_error(kUnique, EINTR);
}

TEST_F(FileServerTest, FilesThatCannotBeShownFail) {
    send(lookup(kUnique));
    EXPECT_FALSE(reply(kQuietMs));
    server_->refuse();
    expect_error(kUnique, EIO);
    send(lookup(kUnique + 1));
    expect_error(kUnique + 1, EIO);
    server_->show(data_.files);
    send(lookup(kUnique + 2));
    expect_error(kUnique + 2, 0);
}

TEST_F(FileServerTest, ATickUnmapsASegmentThatTheSidecarHasRemoved) {
    const auto is_mapped = [&] {
        std::ifstream maps{"/proc/self/maps"};
        const std::string path = data_.node.segment_path(data_.segment);
        for (std::string line; std::getline(maps, line);) {
            if (line.find(path) != std::string::npos) {
                return true;
            }
        }
        return false;
    };
    data_.store(0, kSampleBytes);
    EXPECT_TRUE(data_.files->read(domain::SampleId{0}));
    server_->show(data_.files);
    data_.node.unlink_segment(data_.segment);
    EXPECT_TRUE(is_mapped());
    server_->tick();
    EXPECT_FALSE(is_mapped());
}

TEST_F(FileServerTest, AStopLeavesReadsToTheNextProcess) {
    server_->show(data_.files);
    fuse_read_in range{};
    range.size = 4096;
    std::vector<std::byte> read = request(FUSE_READ, kUnique, range);
    const std::uint64_t file = 4096;  // the first sample
    std::memcpy(read.data() + offsetof(fuse_in_header, nodeid), &file, sizeof file);
    send(read);
    send(request(FUSE_GETATTR, kUnique + 1, fuse_getattr_in{}));
    expect_error(kUnique + 1, 0);  // by then the READ was handled
    server_->stop();
    pool_.reset();
    EXPECT_FALSE(reply(kQuietMs));
    EXPECT_EQ(origin_.fetches, 0);
}

}  // namespace
}  // namespace stoker::files
