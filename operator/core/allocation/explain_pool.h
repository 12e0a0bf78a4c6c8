#pragma once

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/decide_pool.h"

namespace stoker::control {

// Why: adds an allocation for each job of the table, in its order, with reason and numbers, and
// what the quotas add up to. Pure; private to plan_allocation().
void explain_pool(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan);

}  // namespace stoker::control
