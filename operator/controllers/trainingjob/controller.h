#pragma once

#include <functional>
#include <set>
#include <stop_token>
#include <string>

#include "operator/controllers/cluster_cache.h"
#include "operator/controllers/grants/latest_allocation.h"
#include "operator/controllers/status_writer.h"
#include "operator/controllers/trainingjob/diagnosis_finder.h"
#include "operator/core/plan_training_job.h"
#include "operator/kube/client.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/reconciler.h"
#include "operator/sidecars/sidecar_registry.h"

namespace stoker::control {

// Reconciles one TrainingJob: gathers a view, lets operator/core/plan_training_job.h decide, writes
// the status, then acts, then notifies. The order matters, because attempt, restarts and pinned
// revisions are in the status only: a crash between the steps repeats an action, never a decision.
// Thread-safe; different keys may run in parallel.
class TrainingJobController {
public:
    struct Parts {
        ClusterCache& cache;
        SidecarRegistry& registry;
        LatestAllocation& latest;
        ApiClient& client;
        EventRecorder& events;
        const Clock& clock;
        std::function<std::string()> control_ca{};  // returns the current settings.control_ca_pem
    };

    // The parts must outlive it.
    TrainingJobController(Parts parts, JobSettings settings);

    Result<Reconciled> reconcile(const ObjectKey& key, const std::stop_token& stop);

private:
    TrainingJobView gather(const TrainingJob& job);
    void add_strangers(TrainingJobView& view);
    Status act(const TrainingJobView& view, const std::vector<Action>& actions);
    Status act(const TrainingJobView& view, const CreateService& action);
    Status act(const TrainingJobView& view, const CreateJob& action);
    Status act(const TrainingJobView& view, const DeleteJob& action);
    Status act(const TrainingJobView& view, const CreateWorkload& action);
    Status act(const TrainingJobView& view, const DeleteWorkload& action);
    Status act(const TrainingJobView& view, const ReleaseQuota& action);
    Status act(const TrainingJobView& view, const TellWorkload& action);
    Status act(const TrainingJobView& view, const DeleteTrainingJob& action);
    Status remove(const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params);
    Status write_workload(const Workload& workload, const std::string& manager, const Json& body);
    Status create(const TrainingJobView& view, const ResourceKind& kind, const Json& body);
    void tell(const TrainingJobView& view, const std::vector<JobEvent>& events);

    Parts parts_;
    JobSettings settings_;
    StatusWriter status_;
    OwnWrites jobs_made_;  // by TrainingJob
    OwnWrites workloads_made_;
    DiagnosisFinder diagnoses_;
    Guarded<std::set<ObjectKey>>
        clashes_;  // jobs that found a foreign object with the name of one of theirs
};

}  // namespace stoker::control
