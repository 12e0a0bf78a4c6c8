#pragma once

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"

// The conditions of a TrainingJob about its bytes. Pure.
namespace stoker::control {

// No sidecar has reported lately, but one did, or should have by now.
bool is_silent(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now);

// The answer about whatever only sidecars know, while is_silent().
Condition silent();

// CacheAllocated.
Condition judge_cache(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now);

// MinimumGuaranteed, of a job that asks for spec.cache.minBytes.
Condition judge_minimum(const JobAllocation& allocation);

}  // namespace stoker::control
