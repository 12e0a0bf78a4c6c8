#pragma once

#include "operator/controllers/cluster_cache.h"
#include "operator/core/view/training_job_view.h"
#include "operator/kube/client.h"

namespace stoker::control {

// What Kueue says of the job. Asks the API server only at the edges of a stay in a queue: for the
// priority of a Workload that is to be made, and for the flavors of one that is admitted while the
// job `has_attempt` not. What cannot be read is told in `trouble`. Thread-safe.
KueueView read_kueue(
    const TrainingJob& job, bool has_attempt, ClusterCache& cache, ApiClient& client);

}  // namespace stoker::control
