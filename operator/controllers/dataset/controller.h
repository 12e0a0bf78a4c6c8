#pragma once

#include <stop_token>

#include "operator/agents/agent_registry.h"
#include "operator/controllers/cachepool/sweep_ledger.h"
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
    struct Parts {
        ClusterCache& cache;
        AgentRegistry& registry;
        const SweepLedger& ledger;
        ApiClient& client;
        const Clock& clock;
    };

    // All parts must outlive it.
    explicit DatasetController(Parts parts);

    Result<Reconciled> reconcile(const ObjectKey& key, const std::stop_token& stop);

private:
    DatasetView gather(const Dataset& dataset);

    Parts parts_;
    StatusWriter status_;
};

}  // namespace stoker::control
