#include "proto/files/hand_over.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/posix_error.h"

namespace stoker::files {

namespace {

constexpr std::uint32_t kMagic = 0x46444B53;  // "SKDF"

constexpr std::uint32_t kFuseMajor = 10;  // of the FUSE device, on every Linux
constexpr std::uint32_t kFuseMinor = 229;

struct Frame {
    std::uint32_t magic = kMagic;
    std::uint32_t kind = 0;
    std::uint64_t revision = 0;
};

static_assert(sizeof(Frame) == 16);

// Buffer for one file descriptor that comes beside a message.
union Control {
    cmsghdr align;
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

UniqueFd descriptor_of(msghdr& message) {
    UniqueFd result;
    for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS &&
            at->cmsg_len == CMSG_LEN(sizeof(int))) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(at), sizeof descriptor);
            result.reset(descriptor);
        }
    }
    return result;
}

}  // namespace

Status send_hand_over(int socket, const HandOver& message, int descriptor) {
    Frame frame{kMagic, static_cast<std::uint32_t>(message.kind), message.revision};
    iovec part{&frame, sizeof frame};
    Control control{};
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    if (descriptor >= 0) {
        out.msg_control = control.bytes.data();
        out.msg_controllen = control.bytes.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&out);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    if (::sendmsg(socket, &out, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof frame) {
        return fail(ErrorCode::kUnavailable, posix_error(errno, "sending", "a hand-over").message);
    }
    return {};
}

Result<ReceivedHandOver> receive_hand_over(int socket, bool takes_descriptor) {
    Frame frame{};
    iovec part{&frame, sizeof frame};
    Control control{};
    msghdr in{};
    in.msg_iov = &part;
    in.msg_iovlen = 1;
    if (takes_descriptor) {
        in.msg_control = control.bytes.data();
        // Not CMSG_SPACE: it has room for a second descriptor, which would never be closed.
        in.msg_controllen = CMSG_LEN(sizeof(int));
    }
    const ssize_t bytes = ::recvmsg(socket, &in, MSG_CMSG_CLOEXEC);
    ReceivedHandOver result;
    if (bytes >= 0) {
        result.descriptor = descriptor_of(in);  // even an empty message may come with a descriptor
    }
    if (bytes <= 0) {
        return fail(ErrorCode::kUnavailable, "the peer of the hand-over has hung up");
    }
    const bool is_known = frame.kind >= static_cast<std::uint32_t>(HandOverKind::kHello) &&
                          frame.kind <= static_cast<std::uint32_t>(HandOverKind::kShows);
    if (bytes != sizeof frame || frame.magic != kMagic || !is_known) {
        return fail(ErrorCode::kInvalidArgument, "not a hand-over message");
    }
    result.message = {static_cast<HandOverKind>(frame.kind), frame.revision};
    return result;
}

bool is_fuse_connection(int descriptor) {
    struct statx status {};

    // Asks only the kernel, not the file server: a stranger may have sent a file of a FUSE mount
    // whose server never answers.
    if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
        !S_ISCHR(status.stx_mode) || status.stx_rdev_major != kFuseMajor ||
        status.stx_rdev_minor != kFuseMinor) {
        return false;
    }
    std::array<char, 64> target{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
    return length > 0 &&
           std::string_view{target.data(), static_cast<std::size_t>(length)} == "/dev/fuse";
}

}  // namespace stoker::files
