#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

// Improves a feasible division of the problem by exchanges along positive cycles of the residual
// network (Klein 1967), until none is left or `work` is used up; returns the remaining work.
// Private to water_fill().
std::size_t exchange(const FillProblem& problem, std::size_t work, std::vector<Bytes>& amounts);

}  // namespace stoker::control
