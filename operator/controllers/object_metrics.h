#pragma once

#include <string>

#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/grants/latest_allocation.h"
#include "operator/core/view/node_fitness.h"

namespace stoker::control {

// What the statuses of jobs, datasets, pools and quotas say, as metrics: made anew for each
// exposition, so that the numbers of an object go with it. Every replica knows the statuses; the
// profiles are known to the leading one only. Thread-safe.
std::string expose_objects(ClusterCache& cache, const Allocation& allocation);

// What is known of each pool's nodes; empty where node programs do not call this replica.
// Thread-safe.
std::string expose_node_verdicts(
    ClusterCache& cache, const NodeProgramView& programs, TimePoint now);

}  // namespace stoker::control
