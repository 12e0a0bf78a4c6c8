#pragma once

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/decide_pool.h"

namespace stoker::control {

// Adds an allocation with reason and numbers for each job of the table, in its order, and the
// totals by quota. Pure; private to plan_allocation().
void explain_pool(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan);

}  // namespace stoker::control
