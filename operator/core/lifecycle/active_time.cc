#include "operator/core/lifecycle/active_time.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/base/saturating.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

}  // namespace

ActiveTime active_time_of(const TrainingJobStatus& status) {
    return {status.active_seconds, status.active_since};
}

void note(const ActiveTime& time, TrainingJobStatus& status) {
    status.active_seconds = time.seconds;
    status.active_since = time.since;
}

ActiveTime observe_active_time(const TrainingJobStatus& status, const Job* current, WallTime now) {
    ActiveTime time = active_time_of(status);
    const bool is_over =
        is_true(status.conditions, "Complete") || is_true(status.conditions, "Failed");
    const Condition* suspended = find_condition(status.conditions, "Suspended");
    const bool stands = suspended != nullptr && suspended->status == ConditionStatus::kTrue;
    if (current == nullptr || is_over || stands || current->suspend) {
        return time;
    }
    if (!time.since) {
        time.since = std::chrono::floor<seconds>(current->start_time.value_or(now));
        if (suspended != nullptr) {
            time.since = std::max(*time.since, suspended->last_transition);
        }
    }
    return time;
}

ActiveTime stop(const ActiveTime& time, WallTime end) {
    return {total_seconds(time, end), std::nullopt};
}

std::int64_t total_seconds(const ActiveTime& time, WallTime now) {
    if (!time.since) {
        return time.seconds;
    }
    const auto stretch = std::chrono::floor<seconds>(elapsed_between(*time.since, now)).count();
    return add_saturated(time.seconds, std::max<std::int64_t>(stretch, 0));
}

std::optional<std::int64_t> seconds_left(
    const ActiveTime& time, std::optional<std::int64_t> limit, WallTime now) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (!limit) {
        return std::nullopt;
    }
    return std::clamp<std::int64_t>(subtract_saturated(*limit, total_seconds(time, now)), 1, kMost);
}

std::optional<WallTime> deadline_of(const ActiveTime& time, std::optional<std::int64_t> limit) {
    if (!limit || !time.since) {
        return std::nullopt;
    }
    return time_after(*time.since, saturated_seconds(subtract_saturated(*limit, time.seconds)));
}

}  // namespace stoker::control
