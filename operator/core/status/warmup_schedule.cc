#include "operator/core/status/warmup_schedule.h"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "operator/api/time_format.h"
#include "operator/core/spec/cron.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/warmups.h"

namespace stoker::control {

namespace {

bool may_begin(const DatasetWarmup& warmup) {
    return !warmup.spec.suspend && !warmup.meta.deleting_since &&
           (is_finished(warmup) || is_before_first_run(warmup));
}

DatasetWarmupStatus begin(const DatasetWarmupStatus& before, WallTime now) {
    DatasetWarmupStatus status;
    status.observed_generation = before.observed_generation;
    status.last_schedule_time = std::chrono::floor<std::chrono::seconds>(now);
    return status;
}

// The time that the warm-up waits for. If no operator has seen it: the first since creation.
std::optional<WallTime> find_awaited(const DatasetWarmup& warmup, const CronSchedule& schedule) {
    const bool is_new = warmup.status.observed_generation == 0;
    return is_new && !warmup.status.next_schedule_time ? schedule.next(warmup.meta.created_at)
                                                       : warmup.status.next_schedule_time;
}

bool is_due(const std::optional<WallTime>& time, const CronSchedule& schedule, WallTime now) {
    return time && *time <= now && schedule.next(*time - std::chrono::seconds{1}) == time;
}

}  // namespace

bool is_before_first_run(const DatasetWarmup& warmup) {
    return !warmup.spec.schedule.empty() && !warmup.status.last_schedule_time &&
           warmup.status.nodes.empty() && !is_finished(warmup);
}

DatasetWarmup follow_schedule(DatasetWarmup warmup, WallTime now) {
    DatasetWarmupStatus& status = warmup.status;
    const Result<CronSchedule> schedule = CronSchedule::parse(warmup.spec.schedule);
    if (!schedule) {
        status.next_schedule_time.reset();
        return warmup;
    }
    const std::optional<WallTime> awaited = find_awaited(warmup, *schedule);
    if (is_due(awaited, *schedule, now)) {
        if (!may_begin(warmup)) {
            status.next_schedule_time = awaited;
            return warmup;
        }
        status = begin(status, now);
    }
    status.next_schedule_time = schedule->next(now);
    return warmup;
}

std::optional<Condition> judge_schedule(const DatasetWarmup& warmup) {
    if (warmup.spec.schedule.empty()) {
        return std::nullopt;
    }
    if (const Result<CronSchedule> schedule = CronSchedule::parse(warmup.spec.schedule);
        !schedule) {
        return fails("Invalid", fmt::format("No run begins: {}.", schedule.error().message));
    }
    if (warmup.spec.suspend) {
        return fails("Suspended", "spec.suspend is true; no run begins.");
    }
    const std::optional<WallTime> next = warmup.status.next_schedule_time;
    return next ? holds("Scheduled", fmt::format("The next time is {}.", format_time(*next)))
                : fails("NoTime", "spec.schedule has no time in the next years.");
}

}  // namespace stoker::control
