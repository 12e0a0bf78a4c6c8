#include "sidecar/service/sealed_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kIdsPerRead = std::size_t{128} << 10U;
constexpr int kWantedSeals = F_SEAL_SHRINK | F_SEAL_WRITE;

std::optional<std::uint64_t> bytes_in(const UniqueFd& memfd) {
    struct stat info {};

    if (!memfd.valid() || ::fstat(memfd.get(), &info) != 0 || info.st_size < 0) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(info.st_size);
}

// Gives how many ids lie behind the epoch's own.
Result<std::uint64_t> check_memfd(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count) {
    if (!memfd.valid()) {
        return fail(ErrorCode::kInvalidArgument, "a plan comes with a memfd, and this one did not");
    }
    const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & kWantedSeals) != kWantedSeals) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the plan's descriptor is not a memfd sealed against shrinking and writing");
    }
    if (const auto most = plan_positions_max(sample_count); plan.sample_count > most) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a plan of {} positions for a dataset of {} samples, the limit is {}",
                plan.sample_count,
                sample_count,
                most));
    }
    const std::uint64_t own = plan.sample_count * sizeof(std::uint64_t);
    const auto bytes = bytes_in(memfd);
    if (!bytes || *bytes < own || *bytes % sizeof(std::uint64_t) != 0 ||
        *bytes - own > local::kAheadSamplesMax * sizeof(std::uint64_t)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the plan's memfd does not hold {} ids, and up to {} more",
                plan.sample_count,
                local::kAheadSamplesMax));
    }
    return (*bytes - own) / sizeof(std::uint64_t);
}

// The first `bytes` of `memfd`, sealed; nothing: it could not be made.
std::optional<UniqueFd> sealed_copy(const UniqueFd& memfd, std::uint64_t bytes) {
    UniqueFd copy{::memfd_create("stoker-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    off_t offset = 0;
    while (copy.valid() && static_cast<std::uint64_t>(offset) < bytes) {
        const std::uint64_t left = bytes - static_cast<std::uint64_t>(offset);
        if (::sendfile(copy.get(), memfd.get(), &offset, left) <= 0) {
            return std::nullopt;
        }
    }
    if (!copy.valid() || ::fcntl(copy.get(), F_ADD_SEALS, kWantedSeals | F_SEAL_GROW) != 0) {
        return std::nullopt;
    }
    return copy;
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
    STOKER_TRY(const std::uint64_t ahead, check_memfd(memfd, plan, sample_count));
    return plan.sample_count + ahead;
}

Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count) {
    STOKER_TRY(const std::uint64_t total, check_plan(memfd, plan, sample_count));
    const std::uint64_t ahead = total - plan.sample_count;
    std::vector<SampleIndex> samples;
    samples.reserve(total);
    std::vector<std::uint64_t> ids(std::min<std::uint64_t>(total, kIdsPerRead));
    while (samples.size() < total) {
        const std::size_t count = std::min<std::size_t>(ids.size(), total - samples.size());
        const auto offset = static_cast<off_t>(samples.size() * sizeof(std::uint64_t));
        const ssize_t bytes =
            ::pread(memfd.get(), ids.data(), count * sizeof(std::uint64_t), offset);
        if (bytes != static_cast<ssize_t>(count * sizeof(std::uint64_t))) {
            return fail(ErrorCode::kUnavailable, "the plan's memfd cannot be read");
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (ids[i] >= sample_count) {
                return fail(
                    ErrorCode::kInvalidArgument,
                    fmt::format("plan names sample {}, the dataset has {}", ids[i], sample_count));
            }
            samples.push_back(static_cast<SampleIndex>(ids[i]));
        }
    }
    return StreamPlan::make(plan.epoch, std::move(samples), plan.start, sample_count, ahead);
}

UniqueFd without_ahead(UniqueFd memfd, const local::Plan& plan, std::uint64_t sample_count) {
    const auto ahead = check_memfd(memfd, plan, sample_count);
    if (!ahead || *ahead == 0) {
        return memfd;
    }
    auto copy = sealed_copy(memfd, plan.sample_count * sizeof(std::uint64_t));
    return copy ? *std::move(copy) : std::move(memfd);
}

}  // namespace stoker::sidecar
