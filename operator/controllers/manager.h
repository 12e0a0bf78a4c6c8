#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/controllers/cachepool/controller.h"
#include "operator/controllers/cachepool/node_sweeper.h"
#include "operator/controllers/cachequota/controller.h"
#include "operator/controllers/controller_parts.h"
#include "operator/controllers/dataset/controller.h"
#include "operator/controllers/grants/controller.h"
#include "operator/controllers/trainingjob/controller.h"
#include "operator/controllers/warmup/controller.h"
#include "operator/runtime/supervisor.h"
#include "operator/sidecars/node_programs.h"

namespace stoker::control {

struct ManagerSettings {
    JobSettings job;
    std::function<std::string()> control_ca{};  // current PEM for new sidecars; thread-safe
    IssuePeer issue_peer{};                     // thread-safe
    bool adopts_workloads = false;              // true if the webhook is on
    std::uint32_t grant_seconds = 60;
    std::uint32_t workers = 4;  // for TrainingJobs and for Datasets; the other queues have one each
};

// All controllers with their queues, and the events that wake them:
//
//   changes of                        wake
//   TrainingJob                       trainingjob, dataset (those it names), grants
//   Job, Service, Workload of a job   trainingjob
//   Pod of a job                      trainingjob, dataset (of other namespaces), grants
//   Job, Pod of a filler              dataset; a Pod: grants, too
//   Dataset                           dataset, trainingjob (its users), grants; deleted: sweep, too;
//                                     datasetwarmup (its own)
//   DatasetWarmup                     datasetwarmup, its dataset, grants
//   CachePool (not its status)        cachepool, cachequota (all), trainingjob (all), grants
//   CacheQuota (not its status)       cachequota (of the namespace), trainingjob (of it), grants
//   Node                              cachepool (all), trainingjob (all), grants
//   Namespace (labels)                trainingjob (its own), dataset (theirs), grants
//   a sidecar's report                trainingjob and dataset, or the filler's dataset and its
//                                     datasetwarmup; grants
//   a node program's report           sweep; on a directory: cachepool (all) and grants, too
//   a plan of grants                  trainingjob, cachequota and cachepool that it changed
//   a sweep that has ended            dataset (all)
//
// Changes of one object and of its children have normal priority; reports, and events that wake
// many objects, have background priority. A report in which only numbers grew wakes its objects
// later (kLookPause).
//
// An unneeded wake-up costs one reconcile; a missing one is a bug. Thread-safe.
class Manager {
public:
    struct Parts {
        ClusterCache& cache;
        ApiClient& client;
        EventRecorder& events;
        const Clock& clock;
    };

    // Connects the handlers; call it before cache.start(). The parts must outlive it.
    Manager(Parts parts, const ManagerSettings& settings);

    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    // The registry of attached sidecars. Outlives the workers.
    SidecarRegistry& registry() { return registry_; }

    NodeRegistry& nodes() { return nodes_; }

    // The node programs' registry, and the check that a caller with the token of `account` is a
    // node program.
    [[nodiscard]] NodePrograms node_programs(NodeProgramAccount account);

    LatestAllocation& latest() { return latest_; }

    // The settings of sidecars that start now. Thread-safe.
    [[nodiscard]] JobSettings job_settings() const { return parts_.job_settings(); }

    [[nodiscard]] NodeSweeper::Counts sweeps() { return sweeper_.counts(); }

    // Adds the workers: they start once we lead and the caches are filled; until then the queues
    // only fill.
    void add_to(Supervisor& supervisor);

    // Calls `visit` for each reconciler, for metrics.
    void for_each(const std::function<void(Reconciler&)>& visit);

private:
    void connect_training_jobs();
    void connect_children();
    void connect_datasets();
    void connect_warmups();
    void connect_pools_and_quotas();
    void connect_nodes();
    void connect_namespaces();
    void connect_unreadable();
    // Each report of a sidecar may change numbers in statuses. A reconcile for each report would be
    // too many in a large cluster, so an object waits kLookPause times the number of jobs.
    static constexpr Duration kLookPause = std::chrono::milliseconds{5};
    static constexpr Duration kLookPauseMax = std::chrono::seconds{30};
    static constexpr Duration kLookAtOnce =
        std::chrono::milliseconds{200};  // shorter waits are skipped

    void on_report(const ObjectKey& job, bool news);
    // Queues a reconciliation with background priority: now if there is news, else look_later().
    void look(Reconciler& queue, const ObjectKey& key, bool news);
    // Queues a later reconciliation of an object of which only numbers changed.
    void look_later(Reconciler& queue, const ObjectKey& key);
    [[nodiscard]] Priority priority_of_events();
    void on_node_news(const NodeNews& news);
    std::vector<PoolOrder> pools_of(const std::string& node);
    void wake_datasets_of(const TrainingJob& job, bool only_foreign = false);
    void wake_dataset_of_child(const ObjectMeta& child);
    void wake_warmups_of(const ObjectKey& dataset, bool news);

    void wake_grants() { grants_queue_.add(GrantsController::key()); }

    [[nodiscard]] GrantsController::OnChange wakers();

    std::uint32_t workers_;
    std::atomic<bool> working_{false};
    LatestAllocation latest_;
    SweepLedger sweep_ledger_;
    SidecarRegistry registry_;
    NodeRegistry nodes_;
    ControllerParts parts_;
    TrainingJobController training_job_;
    DatasetController dataset_;
    DatasetWarmupController warmup_;
    CachePoolController pool_;
    CacheQuotaController quota_;
    GrantsController grants_;
    NodeSweeper sweeper_;
    Reconciler training_job_queue_;
    Reconciler dataset_queue_;
    Reconciler warmup_queue_;
    Reconciler pool_queue_;
    Reconciler quota_queue_;
    Reconciler grants_queue_;
    Reconciler sweep_queue_;
};

}  // namespace stoker::control
