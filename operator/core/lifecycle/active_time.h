#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "operator/api/job.h"
#include "operator/api/training_job.h"

// How long a TrainingJob has been active over all its attempts: what activeDeadlineSeconds counts.
// Time in which it is suspended, queued or waits does not count. Pure.
namespace stoker::control {

struct ActiveTime {
    std::int64_t seconds = 0;       // before `since`
    std::optional<WallTime> since;  // whole seconds; none: the job is not active now

    bool operator==(const ActiveTime&) const = default;
};

// The active time of `status`, updated from the present attempt's Job: time runs from its start,
// or from the end of a suspension where the Job is older. While the job is suspended, or has no Job
// (`current` null), the status stands.
ActiveTime observe_active_time(const TrainingJobStatus& status, const Job* current, WallTime now);

// The same time, stopped at `end`.
ActiveTime stop(const ActiveTime& time, WallTime end);

// Until now, in whole seconds.
std::int64_t total_seconds(const ActiveTime& time, WallTime now);

// When `limit` seconds are over; none while the time does not run, or without a limit.
std::optional<WallTime> deadline_of(const ActiveTime& time, std::optional<std::int64_t> limit);

}  // namespace stoker::control
