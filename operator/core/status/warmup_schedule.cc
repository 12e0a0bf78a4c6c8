#include "operator/core/status/warmup_schedule.h"

#include <chrono>
#include <utility>

#include "operator/core/spec/cron.h"
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

}  // namespace

bool is_before_first_run(const DatasetWarmup& warmup) {
    return !warmup.spec.schedule.empty() && !warmup.status.last_schedule_time &&
           warmup.status.nodes.empty() && !is_finished(warmup);
}

DatasetWarmup follow_schedule(DatasetWarmup warmup, WallTime now) {
    DatasetWarmupStatus& status = warmup.status;
    status.next_schedule_time.reset();
    const Result<CronSchedule> schedule = CronSchedule::parse(warmup.spec.schedule);
    if (!schedule) {
        return warmup;
    }
    const WallTime since = status.last_schedule_time.value_or(warmup.meta.created_at);
    const std::optional<WallTime> due = schedule->next(since);
    if (due && *due <= now && may_begin(warmup)) {
        status = begin(status, now);
    }
    status.next_schedule_time = schedule->next(now);
    return warmup;
}

}  // namespace stoker::control
