#include "sidecar/service/sealed_plan.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kIdsPerRead = std::size_t{128} << 10U;

Status check_memfd(const UniqueFd& memfd, const local::Plan& plan) {
    if (!memfd.valid()) {
        return fail(ErrorCode::kInvalidArgument, "a plan comes with a memfd, and this one did not");
    }
    const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
    constexpr int kWanted = F_SEAL_SHRINK | F_SEAL_WRITE;
    if (seals < 0 || (seals & kWanted) != kWanted) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the plan's descriptor is not a memfd sealed against shrinking and writing");
    }

    struct stat info {};

    if (plan.sample_count > kPlanPositionsMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a plan of {} positions, the limit is {}", plan.sample_count, kPlanPositionsMax));
    }
    if (::fstat(memfd.get(), &info) != 0 ||
        static_cast<std::uint64_t>(info.st_size) != plan.sample_count * sizeof(std::uint64_t)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the plan's memfd does not hold {} ids", plan.sample_count));
    }
    return {};
}

}  // namespace

Result<StreamPlan> read_plan(
    const UniqueFd& memfd, const local::Plan& plan, std::uint64_t sample_count) {
    STOKER_TRY_VOID(check_memfd(memfd, plan));
    std::vector<SampleIndex> samples;
    samples.reserve(plan.sample_count);
    std::vector<std::uint64_t> ids(std::min<std::uint64_t>(plan.sample_count, kIdsPerRead));
    while (samples.size() < plan.sample_count) {
        const std::size_t count =
            std::min<std::size_t>(ids.size(), plan.sample_count - samples.size());
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
    return StreamPlan::make(plan.epoch, std::move(samples), plan.start, sample_count);
}

}  // namespace stoker::sidecar
