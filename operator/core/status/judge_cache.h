#pragma once

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"

// Conditions of a TrainingJob about its cache bytes. Pure.
namespace stoker::control {

// Whether recent sidecar reports are missing: some arrived before, or should have arrived by now.
bool is_silent(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now);

// Answer to questions that only sidecars can answer, while is_silent().
Condition silent();

// The condition CacheAllocated.
Condition judge_cache(
    const TrainingJobView& view, const Lifecycle& lifecycle, const Totals& sum, const Moment& now);

// The condition MinimumGuaranteed, for a job with spec.cache.minBytes.
Condition judge_minimum(const JobAllocation& allocation);

}  // namespace stoker::control
