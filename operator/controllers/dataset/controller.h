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

// Keeps a Dataset's status true: what the sidecars of the jobs that use it say, or said last. Keeps
// its fillers where jobs of other namespaces read it, and tells by an Event when one is refused.
// Thread-safe; different keys side by side.
class DatasetController {
public:
    struct Parts {
        ClusterCache& cache;
        SidecarRegistry& registry;
        const SweepLedger& ledger;
        ApiClient& client;
        EventRecorder& events;
        const Clock& clock;
        std::function<std::string()> control_ca{};  // settings.control_ca_pem as of now
    };

    // All parts must outlive it. `settings`: of the fillers' sidecars.
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
