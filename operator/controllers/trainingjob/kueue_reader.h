#pragma once

#include "operator/controllers/cluster_cache.h"
#include "operator/core/view/training_job_view.h"
#include "operator/kube/client.h"

namespace stoker::control {

// Kueue's state of the job. Sends requests only when a job enters or leaves the queue: for the
// priority of a new Workload, and for the flavors of an admitted Workload while the job has no
// attempt (`has_attempt` false). Errors are in `trouble`. Thread-safe.
KueueView read_kueue(
    const TrainingJob& job, bool has_attempt, ClusterCache& cache, ApiClient& client);

}  // namespace stoker::control
