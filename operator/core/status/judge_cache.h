#pragma once

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/judgement.h"
#include "operator/core/view/tally.h"
#include "operator/core/view/training_job_view.h"

// The condition CacheAllocated of a TrainingJob. Pure.
namespace stoker::control {

// Nobody speaks now, but somebody did, or should have by now.
bool is_silent(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Tally& sum, const Moment& now);

// What is then said.
Judgement silent();

Judgement judge_cache(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Tally& sum, const Moment& now);

}  // namespace stoker::control
