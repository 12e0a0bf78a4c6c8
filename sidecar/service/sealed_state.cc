#include "sidecar/service/sealed_state.h"

#include <span>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/posix_error.h"

namespace stoker::sidecar {

namespace {

constexpr std::string_view kState = "the state of a begin";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_WRITE;

Status check_memfd(const UniqueFd& memfd, std::uint64_t size) {
    const int seals = memfd.valid() ? ::fcntl(memfd.get(), F_GET_SEALS) : -1;
    if (seals < 0 || (seals & kSeals) != kSeals) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the state of a begin comes in a memfd sealed against shrinking and writing");
    }

    struct stat info {};

    if (::fstat(memfd.get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) != size) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the memfd of a begin does not hold {} bytes", size));
    }
    return {};
}

Status read_all(const UniqueFd& memfd, std::uint64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t got =
            ::pread(memfd.get(), out.data(), out.size(), static_cast<off_t>(offset));
        if (got <= 0) {
            return fail(ErrorCode::kInvalidArgument, "the memfd of a begin cannot be read");
        }
        offset += static_cast<std::uint64_t>(got);
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

Status write_all(const UniqueFd& memfd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(memfd.get(), bytes.data(), bytes.size());
        if (wrote < 0) {
            return fail_errno("writing", kState);
        }
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return {};
}

}  // namespace

Result<BeginState> read_begin_state(
    const UniqueFd& memfd, const local::Begin& begin, std::uint64_t sample_count) {
    BeginState state;
    if (begin.served_bytes == 0 && begin.snapshot_bytes == 0) {
        return state;
    }
    if (begin.served_bytes > sample_count / 8 + 1 || begin.snapshot_bytes > kSnapshotBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a begin with {} bytes of served samples and a snapshot of {}, for a dataset of {}",
                begin.served_bytes,
                begin.snapshot_bytes,
                sample_count));
    }
    STOKER_TRY_VOID(check_memfd(memfd, begin.served_bytes + begin.snapshot_bytes));
    state.served.resize(begin.served_bytes);
    state.snapshot.resize(begin.snapshot_bytes);
    STOKER_TRY_VOID(read_all(memfd, 0, state.served));
    STOKER_TRY_VOID(
        read_all(memfd, begin.served_bytes, std::as_writable_bytes(std::span{state.snapshot})));
    return state;
}

Result<UniqueFd> seal_begin_state(const BeginState& state) {
    UniqueFd memfd{::memfd_create("stoker-begin", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!memfd.valid()) {
        return fail_errno("making a memfd for", kState);
    }
    STOKER_TRY_VOID(write_all(memfd, state.served));
    STOKER_TRY_VOID(write_all(memfd, std::as_bytes(std::span{state.snapshot})));
    if (::fcntl(memfd.get(), F_ADD_SEALS, kSeals | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return fail_errno("sealing", kState);
    }
    return memfd;
}

}  // namespace stoker::sidecar
