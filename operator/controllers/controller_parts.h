#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/controllers/cachepool/sweep_ledger.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/grants/latest_allocation.h"
#include "operator/core/workload/build_job.h"
#include "operator/kube/client.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/reconciler.h"
#include "operator/sidecars/node_registry.h"
#include "operator/sidecars/sidecar_registry.h"

namespace stoker::control {

// Signs a sidecar's request for these URIs; empty: this operator has no CA of its own.
using IssuePeer = std::function<Result<PeerCertificate>(
    const std::string& request_pem, const std::vector<std::string>& uris)>;

// The parts that all controllers share: the watched objects, the connected sidecars and node programs, the
// last plan, and the API server. Each part is thread-safe and must outlive the controllers.
struct ControllerParts {
    ClusterCache& cache;
    SidecarRegistry& registry;
    NodeRegistry& nodes;
    LatestAllocation& latest;
    SweepLedger& ledger;
    ApiClient& client;
    EventRecorder& events;
    const Clock& clock;
    JobSettings settings{};
    std::function<std::string()> control_ca{};  // the current PEM for new sidecars
    IssuePeer issue_peer{};
    bool adopts_workloads = false;  // creates TrainingJobs for pods that the webhook changed

    // The settings of sidecars that start now.
    [[nodiscard]] JobSettings job_settings() const {
        JobSettings now = settings;
        now.control_ca_pem = control_ca ? control_ca() : now.control_ca_pem;
        return now;
    }
};

}  // namespace stoker::control
