#include "proto/files/hand_over.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stoker::files {
namespace {

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

class HandOverTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::array<int, 2> pair{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
        near_.reset(pair[0]);
        far_.reset(pair[1]);
    }

    // Sends the first `bytes` bytes of a kHello message, and two descriptors with them.
    void send_two_descriptors(std::size_t bytes) {
        ASSERT_TRUE(send_hand_over(near_.get(), {HandOverKind::kHello, 1}, -1));
        std::array<char, 16> hello{};
        ASSERT_EQ(::recv(far_.get(), hello.data(), hello.size(), 0), 16);
        const std::array<int, 2> sent{null_.get(), null_.get()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof sent)> control{};
        iovec part{hello.data(), bytes};
        msghdr out{};
        out.msg_iov = &part;
        out.msg_iovlen = 1;
        out.msg_control = control.data();
        out.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&out);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof sent);
        std::memcpy(CMSG_DATA(rights), sent.data(), sizeof sent);
        ASSERT_EQ(::sendmsg(near_.get(), &out, 0), static_cast<ssize_t>(bytes));
    }

    UniqueFd null_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    UniqueFd near_;
    UniqueFd far_;
};

TEST_F(HandOverTest, CarriesAMessageAndItsDescriptor) {
    ASSERT_TRUE(send_hand_over(near_.get(), {HandOverKind::kMount, 7}, null_.get()));
    const auto received = receive_hand_over(far_.get(), true);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->message, (HandOver{HandOverKind::kMount, 7}));
    EXPECT_TRUE(received->descriptor.valid());
}

TEST_F(HandOverTest, TakesOneDescriptorOfTwo) {
    send_two_descriptors(16);
    const auto before = open_descriptors();
    {
        const auto received = receive_hand_over(far_.get(), true);
        ASSERT_TRUE(received);
        EXPECT_TRUE(received->descriptor.valid());
        EXPECT_EQ(open_descriptors(), before + 1);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(HandOverTest, KeepsNoDescriptorOfAMessageThatItRefuses) {
    for (const std::size_t bytes : {0, 3}) {
        send_two_descriptors(bytes);
        const auto before = open_descriptors();
        EXPECT_FALSE(receive_hand_over(far_.get(), true));
        EXPECT_EQ(open_descriptors(), before);
    }
}

TEST_F(HandOverTest, DropsDescriptorsThatAreNotWanted) {
    send_two_descriptors(16);
    const auto before = open_descriptors();
    const auto received = receive_hand_over(far_.get(), false);
    ASSERT_TRUE(received);
    EXPECT_FALSE(received->descriptor.valid());
    EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace stoker::files
