#pragma once

#include <stop_token>

#include "operator/agents/agent_registry.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/status_writer.h"
#include "operator/core/summarize_dataset.h"
#include "operator/kube/client.h"
#include "operator/runtime/reconciler.h"

namespace stoker::control {

// Keeps a Dataset's status true: what the sidecars of the jobs that use it say, or said last.
// Thread-safe; different keys side by side.
class DatasetController {
public:
    // All must outlive it.
    DatasetController(
        ClusterCache& cache, AgentRegistry& registry, ApiClient& client, const Clock& clock);

    Result<Reconciled> reconcile(const ObjectKey& key, const std::stop_token& stop);

private:
    DatasetView gather(const Dataset& dataset);

    ClusterCache& cache_;
    AgentRegistry& registry_;
    const Clock& clock_;
    StatusWriter status_;
};

}  // namespace stoker::control
