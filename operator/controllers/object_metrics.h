#pragma once

#include <string>

#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/grants/latest_allocation.h"
#include "operator/core/view/node_fitness.h"

namespace stoker::control {

// Metrics from the statuses of jobs, datasets, pools and quotas: rebuilt for each exposition, so
// that a deleted object's series disappear. Every replica exposes statuses; only the leading
// replica, which measures jobs, also exposes their profiles. Thread-safe.
std::string expose_objects(ClusterCache& cache, const Allocation& allocation);

// Metrics of the verdicts on each pool's nodes; empty on a replica that node programs do not call.
// Thread-safe.
std::string expose_node_verdicts(
    ClusterCache& cache, const NodeProgramView& programs, TimePoint now);

}  // namespace stoker::control
