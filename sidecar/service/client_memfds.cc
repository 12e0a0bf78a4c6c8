#include "sidecar/service/client_memfds.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/posix_error.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kIdBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kIdsPerRead = std::uint64_t{128} << 10U;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_WRITE;
constexpr std::string_view kMemfd = "a memfd for a leader";

// The length of a frame's memfd in bytes; checks its seals.
Result<std::uint64_t> sealed_bytes(const UniqueFd& memfd, std::string_view frame) {
    struct stat info {};

    const int seals = memfd.valid() ? ::fcntl(memfd.get(), F_GET_SEALS) : -1;
    if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(memfd.get(), &info) != 0) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("a {} needs a memfd that is sealed against shrinking and writing", frame));
    }
    return static_cast<std::uint64_t>(info.st_size);
}

Status read_exactly(const UniqueFd& memfd, std::uint64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t got =
            ::pread(memfd.get(), out.data(), out.size(), static_cast<off_t>(offset));
        if (got <= 0) {
            return fail(ErrorCode::kUnavailable, "a client's memfd cannot be read");
        }
        offset += static_cast<std::uint64_t>(got);
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

// Creates a sealed memfd with the bytes that `write` writes.
template <class Write>
Result<UniqueFd> seal(Write write) {
    UniqueFd memfd{::memfd_create("stoker", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!memfd.valid() || !write(memfd.get()) ||
        ::fcntl(memfd.get(), F_ADD_SEALS, kSeals | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return fail_errno("making", kMemfd);
    }
    return memfd;
}

bool write_all(int memfd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(memfd, bytes.data(), bytes.size());
        if (wrote < 0) {
            return false;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return true;
}

}  // namespace

std::uint64_t plan_positions_max(std::uint64_t sample_count) {
    constexpr std::uint64_t kEpochs = 8;
    constexpr std::uint64_t kLeast = std::uint64_t{1} << 16U;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 28U;
    return std::clamp(std::min(sample_count, kMost) * kEpochs, kLeast, kMost);
}

Result<std::uint64_t> check_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count) {
    STOKER_TRY(const std::uint64_t bytes, sealed_bytes(memfd, "plan"));
    if (const auto most = plan_positions_max(sample_count); plan.sample_count > most) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "plan has {} positions for a dataset of {} samples; the limit is {}",
                plan.sample_count,
                sample_count,
                most));
    }
    const std::uint64_t total = bytes / kIdBytes;
    if (bytes % kIdBytes != 0 || total < plan.sample_count ||
        total - plan.sample_count > local::kAheadSamplesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the plan's memfd must hold {} ids, and may hold up to {} more",
                plan.sample_count,
                local::kAheadSamplesMax));
    }
    return total;
}

Status visit_ids(
    const UniqueFd& memfd,
    std::uint64_t begin,
    std::uint64_t end,
    const std::function<bool(std::span<const std::uint64_t>)>& visit) {
    std::vector<std::uint64_t> ids(begin < end ? std::min(end - begin, kIdsPerRead) : 0);
    while (begin < end) {
        const std::span piece{ids.data(), std::min<std::size_t>(ids.size(), end - begin)};
        STOKER_TRY_VOID(read_exactly(memfd, begin * kIdBytes, std::as_writable_bytes(piece)));
        if (!visit(piece)) {
            break;
        }
        begin += piece.size();
    }
    return {};
}

Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count) {
    STOKER_TRY(const std::uint64_t total, check_plan(memfd, plan, sample_count));
    std::vector<SampleIndex> samples;
    samples.reserve(total);
    std::optional<std::uint64_t> wrong;
    STOKER_TRY_VOID(visit_ids(memfd, 0, total, [&](std::span<const std::uint64_t> ids) {
        for (const std::uint64_t id : ids) {
            if (id >= sample_count) {
                wrong = id;
                return false;
            }
            samples.push_back(static_cast<SampleIndex>(id));
        }
        return true;
    }));
    if (wrong) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("plan has sample id {}, the dataset has {}", *wrong, sample_count));
    }
    return StreamPlan::make(
        plan.epoch, std::move(samples), plan.start, sample_count, total - plan.sample_count);
}

UniqueFd without_ahead(UniqueFd memfd, const local::Plan& plan, std::uint64_t sample_count) {
    const auto total = check_plan(memfd, plan, sample_count);
    if (!total || *total == plan.sample_count) {
        return memfd;
    }
    auto copy = seal([&memfd, bytes = plan.sample_count * kIdBytes](int target) {
        off_t offset = 0;
        while (static_cast<std::uint64_t>(offset) < bytes) {
            if (::sendfile(
                    target, memfd.get(), &offset, bytes - static_cast<std::uint64_t>(offset)) <=
                0) {
                return false;
            }
        }
        return true;
    });
    return copy ? *std::move(copy) : std::move(memfd);
}

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
                "begin: served ({} bytes) or snapshot ({} bytes) is too long for {} samples",
                begin.served_bytes,
                begin.snapshot_bytes,
                sample_count));
    }
    STOKER_TRY(const std::uint64_t bytes, sealed_bytes(memfd, "begin with a state"));
    if (bytes != begin.served_bytes + begin.snapshot_bytes) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "begin's memfd has {} bytes, but its frame states {} + {}",
                bytes,
                begin.served_bytes,
                begin.snapshot_bytes));
    }
    state.served.resize(begin.served_bytes);
    state.snapshot.resize(begin.snapshot_bytes);
    STOKER_TRY_VOID(read_exactly(memfd, 0, state.served));
    STOKER_TRY_VOID(
        read_exactly(memfd, begin.served_bytes, std::as_writable_bytes(std::span{state.snapshot})));
    return state;
}

Result<UniqueFd> seal_begin_state(const BeginState& state) {
    return seal([&state](int memfd) {
        return write_all(memfd, state.served) &&
               write_all(memfd, std::as_bytes(std::span{state.snapshot}));
    });
}

}  // namespace stoker::sidecar
