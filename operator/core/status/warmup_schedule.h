#pragma once

#include <optional>

#include "operator/api/condition.h"
#include "operator/api/dataset_warmup.h"

// When a DatasetWarmup with spec.schedule runs. Pure.
namespace stoker::control {

// A condition of a DatasetWarmup with a schedule: whether it has a next time.
inline constexpr const char* kWarmupScheduled = "Scheduled";

// The warm-up with its next time. If the next time in its status has come, and is a time of the
// present schedule, the warm-up begins anew: without nodes, conditions and numbers. During a run or
// a suspension that time stays in the status, so the next run begins when the run or suspension
// ends. Times between are skipped; so is each time before the schedule was set or changed.
DatasetWarmup follow_schedule(DatasetWarmup warmup, WallTime now);

// The condition kWarmupScheduled, without a type; nullopt: the warm-up has no schedule.
std::optional<Condition> judge_schedule(const DatasetWarmup& warmup);

// Whether the first time has not come yet.
bool is_before_first_run(const DatasetWarmup& warmup);

}  // namespace stoker::control
