#pragma once

#include "operator/api/dataset_warmup.h"

// When a DatasetWarmup with spec.schedule runs. Pure.
namespace stoker::control {

// The warm-up with its next time. If a time of the schedule has come since the last one (since its
// creation, if there was none), it begins anew: without nodes, conditions and numbers. Never while a run
// goes on or while it is suspended: a time that comes then counts, once, when that ends.
DatasetWarmup follow_schedule(DatasetWarmup warmup, WallTime now);

// Whether the first time has not come yet.
bool is_before_first_run(const DatasetWarmup& warmup);

}  // namespace stoker::control
