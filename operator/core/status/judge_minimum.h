#pragma once

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/spec/judgement.h"

namespace stoker::control {

// Condition MinimumGuaranteed of a job that asks for spec.cache.minBytes. Pure.
Judgement judge_minimum(const JobAllocation& allocation);

}  // namespace stoker::control
