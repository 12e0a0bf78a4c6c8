#pragma once

#include "operator/core/allocation/decide_pool.h"

namespace stoker::control {

// Divides the origin's bandwidth max-min fairly among jobs, only if it is too small for all; fills get
// what jobs do not need. Sets the decision's origin_limit, job_origin and fill_origin. Pure; private to decide_pool().
void share_bandwidth(const ClaimTable& table, PoolDecision& decision);

}  // namespace stoker::control
