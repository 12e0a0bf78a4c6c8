#include "node/mount/fuse_mount.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/posix_error.h"

namespace stoker::node {

namespace {

constexpr const char* kDevice = "/dev/fuse";
constexpr int kPatienceMs = 5000;
constexpr std::uint32_t kReadAheadBytes = 1 << 20;
constexpr std::uint32_t kRequestBytesMax = 1 << 20;
constexpr std::uint32_t kPageBytes = 4096;
constexpr std::uint64_t kValidSeconds = std::uint64_t{1} << 30U;
constexpr std::uint64_t kHasResend = std::uint64_t{1} << 39U;  // FUSE_HAS_RESEND of newer headers
constexpr std::uint64_t kWanted = FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS | FUSE_BIG_WRITES |
                                  FUSE_MAX_PAGES | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO |
                                  FUSE_NO_OPENDIR_SUPPORT | FUSE_INIT_EXT | kHasResend;

// The first part of fuse_init_in, which older headers know without flags2.
struct InitRequest {
    fuse_in_header head;
    std::uint32_t major;
    std::uint32_t minor;
    std::uint32_t max_readahead;
    std::uint32_t flags;
    std::uint32_t flags2;
};

Status reply(int connection, std::uint64_t unique, const void* payload, std::size_t bytes) {
    std::vector<char> message(sizeof(fuse_out_header) + bytes);
    const fuse_out_header head{static_cast<std::uint32_t>(message.size()), 0, unique};
    std::memcpy(message.data(), &head, sizeof head);
    std::memcpy(message.data() + sizeof head, payload, bytes);
    if (::write(connection, message.data(), message.size()) < 0) {
        return fail_errno("answering", kDevice);
    }
    return {};
}

// Waits for the next request of this kind; others at this time get EAGAIN. What the request lacks of
// InitRequest is zero. The kernel reads only into a buffer that its largest request would fit,
// though these are small. The buffer is not initialised, so its pages are never allocated: each
// thread's malloc arena would keep 1 MiB of them.
Result<InitRequest> await_request(int connection, std::uint32_t opcode) {
    constexpr std::size_t kBufferBytes = kRequestBytesMax + 65536;
    const auto buffer = std::make_unique_for_overwrite<char[]>(kBufferBytes);
    while (true) {
        pollfd wait{connection, POLLIN, 0};
        if (::poll(&wait, 1, kPatienceMs) <= 0) {
            return fail(ErrorCode::kUnavailable, "the kernel sends no FUSE request");
        }
        const ssize_t bytes = ::read(connection, buffer.get(), kBufferBytes);
        if (bytes < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) {
            continue;
        }
        InitRequest request{};
        if (bytes < static_cast<ssize_t>(sizeof request.head)) {
            return fail_errno("reading", kDevice);
        }
        std::memcpy(
            &request, buffer.get(), std::min(static_cast<std::size_t>(bytes), sizeof request));
        if (request.head.opcode == opcode) {
            return request;
        }
        const fuse_out_header again{sizeof again, -EAGAIN, request.head.unique};
        [[maybe_unused]] const auto written = ::write(connection, &again, sizeof again);
    }
}

Status answer_init(int connection) {
    STOKER_TRY(const InitRequest asked, await_request(connection, FUSE_INIT));
    const bool has_more = (asked.flags & FUSE_INIT_EXT) != 0;
    const std::uint64_t offered = asked.flags | (has_more ? std::uint64_t{asked.flags2} << 32U : 0);
    const std::uint64_t flags = offered & kWanted;
    fuse_init_out answer{};
    answer.major = FUSE_KERNEL_VERSION;
    answer.minor = std::min<std::uint32_t>(asked.minor, FUSE_KERNEL_MINOR_VERSION);
    answer.max_readahead = kReadAheadBytes;
    answer.flags = static_cast<std::uint32_t>(flags);
    answer.flags2 = static_cast<std::uint32_t>(flags >> 32U);
    answer.max_background = 64;
    answer.congestion_threshold = 48;
    answer.max_write = kRequestBytesMax;
    answer.time_gran = 1;
    answer.max_pages = kRequestBytesMax / kPageBytes;
    return reply(connection, asked.head.unique, &answer, sizeof answer);
}

Status answer_root(int connection) {
    STOKER_TRY(const InitRequest asked, await_request(connection, FUSE_GETATTR));
    fuse_attr_out answer{};
    answer.attr_valid = kValidSeconds;
    answer.attr.ino = FUSE_ROOT_ID;
    answer.attr.mode = S_IFDIR | 0555;
    answer.attr.nlink = 2;
    answer.attr.blksize = kPageBytes;
    return reply(connection, asked.head.unique, &answer, sizeof answer);
}

// Lets the kernel read kReadAheadBytes ahead, so that it reads large files in large requests. Its
// default is 128 KiB.
void set_read_ahead(const std::string& target) {
    struct statx status {};

    if (::statx(AT_FDCWD, target.c_str(), AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, 0, &status) ==
        0) {
        std::ofstream{fmt::format(
            "/sys/class/bdi/{}:{}/read_ahead_kb", status.stx_dev_major, status.stx_dev_minor)}
            << kReadAheadBytes / 1024;
    }
}

// Looks at the root on another thread, while this one answers.
Status look_at_root(int connection, const std::string& target) {
    std::jthread look{[&target] {
        struct statx status {};

        ::statx(
            AT_FDCWD,
            target.c_str(),
            AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
            STATX_BASIC_STATS,
            &status);
    }};
    const Status answered = answer_root(connection);
    if (!answered) {
        ::umount2(target.c_str(), MNT_DETACH | MNT_FORCE | UMOUNT_NOFOLLOW);  // ends the look
    }
    return answered;
}

}  // namespace

Result<UniqueFd> mount_fuse(const std::string& target) {
    UniqueFd connection{::open(kDevice, O_RDWR | O_CLOEXEC)};
    if (!connection.valid()) {
        return fail_errno("opening", kDevice);
    }
    const std::string options = fmt::format(
        "fd={},rootmode=40555,user_id=0,group_id=0,allow_other,default_permissions",
        connection.get());
    constexpr unsigned long kFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (::mount("stoker", target.c_str(), kFilesType, kFlags, options.c_str()) != 0) {
        return fail_errno("mounting files at", target);
    }
    Status ready = answer_init(connection.get());
    if (ready) {
        ready = look_at_root(connection.get(), target);
    }
    if (!ready) {
        ::umount2(target.c_str(), MNT_DETACH | MNT_FORCE | UMOUNT_NOFOLLOW);
        return fail(ready.error());
    }
    set_read_ahead(target);
    return connection;
}

}  // namespace stoker::node
