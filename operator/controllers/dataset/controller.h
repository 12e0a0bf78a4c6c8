#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "operator/controllers/cachepool/sweep_ledger.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/dataset/filler_keeper.h"
#include "operator/controllers/status_writer.h"
#include "operator/core/status/summarize_dataset.h"
#include "operator/core/workload/build_job.h"
#include "operator/kube/client.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/reconciler.h"
#include "operator/sidecars/sidecar_registry.h"

namespace stoker::control {

// Keeps a Dataset's status current from the last reports of its users' sidecars. Creates its
// fillers where jobs of other namespaces read it, and emits an Event if one is refused.
// Thread-safe; different keys may run in parallel.
class DatasetController {
public:
    struct Parts {
        ClusterCache& cache;
        SidecarRegistry& registry;
        const SweepLedger& ledger;
        ApiClient& client;
        EventRecorder& events;
        const Clock& clock;
        std::function<std::string()> control_ca{};  // returns the current settings.control_ca_pem
    };

    // All parts must outlive it. `settings` are for the fillers' sidecars.
    DatasetController(Parts parts, JobSettings settings);

    Result<Reconciled> reconcile(const ObjectKey& key, const std::stop_token& stop);

private:
    DatasetView gather(const Dataset& dataset, const std::vector<JobUse>& users);
    void add_user(const JobUse& use, DatasetView& view);
    void tell(const Dataset& before, const Dataset& after);

    Parts parts_;
    StatusWriter status_;
    FillerKeeper fillers_;
};

}  // namespace stoker::control
