#pragma once

#include <stop_token>

#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/grants/latest_allocation.h"
#include "operator/controllers/status_writer.h"
#include "operator/kube/client.h"
#include "operator/runtime/reconciler.h"
#include "operator/sidecars/node_registry.h"

namespace stoker::control {

// Keeps a CachePool's status current. Thread-safe; different keys may run in parallel.
class CachePoolController {
public:
    // All arguments must outlive it.
    CachePoolController(
        ClusterCache& cache,
        NodeRegistry& nodes,
        LatestAllocation& latest,
        ApiClient& client,
        const Clock& clock);

    Result<Reconciled> reconcile(const ObjectKey& key, const std::stop_token& stop);

private:
    ClusterCache& cache_;
    NodeRegistry& nodes_;
    LatestAllocation& latest_;
    const Clock& clock_;
    StatusWriter status_;
};

}  // namespace stoker::control
