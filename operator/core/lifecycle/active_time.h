#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "operator/api/job.h"
#include "operator/api/training_job.h"

// Active time of a TrainingJob over all its attempts, which activeDeadlineSeconds limits. Time
// while suspended, queued or waiting does not count. Pure.
namespace stoker::control {

struct ActiveTime {
    std::int64_t seconds = 0;       // active time before `since`
    std::optional<WallTime> since;  // whole seconds; none: the job is not active now

    bool operator==(const ActiveTime&) const = default;
};

// Read the active time from `status`, and store it there.
ActiveTime active_time_of(const TrainingJobStatus& status);
void note(const ActiveTime& time, TrainingJobStatus& status);

// The active time of `status`, updated from the present attempt's Job: time counts from the Job's
// start, or from the end of a suspension if that is later. While the job is suspended or has no Job
// (`current` null), the status is returned unchanged.
ActiveTime observe_active_time(const TrainingJobStatus& status, const Job* current, WallTime now);

// The same active time, stopped at `end`.
ActiveTime stop(const ActiveTime& time, WallTime end);

// Active time until now, in whole seconds.
std::int64_t total_seconds(const ActiveTime& time, WallTime now);

// Time when `limit` active seconds are over; none while stopped or without a limit.
std::optional<WallTime> deadline_of(const ActiveTime& time, std::optional<std::int64_t> limit);

// Seconds until `limit` active seconds are over, for a Job's activeDeadlineSeconds: 1 to 2^31 - 1.
// None without a limit. The Job controller multiplies by 1e9 in 64 bits; the operator enforces
// longer deadlines itself.
std::optional<std::int64_t> seconds_left(
    const ActiveTime& time, std::optional<std::int64_t> limit, WallTime now);

}  // namespace stoker::control
