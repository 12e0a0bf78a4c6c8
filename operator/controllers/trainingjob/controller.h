#pragma once

#include <optional>
#include <set>
#include <string>

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/status_writer.h"
#include "operator/controllers/trainingjob/diagnosis_finder.h"
#include "operator/controllers/trainingjob/workload_reader.h"
#include "operator/core/lifecycle/pin_hold.h"
#include "operator/core/plan_training_job.h"

namespace stoker::control {

// Reconciles one TrainingJob: gathers a view, lets operator/core/plan_training_job.h decide, writes
// the status, then acts, then notifies. The order matters, because attempt, restarts and pinned
// revisions are in the status only: a crash between the steps repeats an action, never a decision.
// Thread-safe; different keys may run in parallel.
class TrainingJobController {
public:
    explicit TrainingJobController(const ControllerParts& parts);

    Result<Reconciled> reconcile(const ObjectKey& key);

private:
    // Call it when the job is gone.
    void forget(const ObjectKey& key);
    // Sends the pins, except those that PinHold holds until the nodes know each other as peers;
    // returns the time until the held pins are due.
    std::optional<Duration> send_pins(const TrainingJobView& view, const TrainingJobPlan& plan);
    TrainingJobView gather(const TrainingJob& job);
    void add_allocation(TrainingJobView& view);
    void add_fillers(TrainingJobView& view);
    void add_nodes(TrainingJobView& view);
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

    ControllerParts parts_;
    StatusWriter status_;
    OwnWrites jobs_made_;  // by TrainingJob
    OwnWrites workloads_made_;
    DiagnosisFinder diagnoses_;
    WorkloadReader workloads_;
    Guarded<std::set<ObjectKey>>
        clashes_;  // jobs that found a foreign object with the name of one of theirs
    Guarded<PinHold> pin_hold_;
};

}  // namespace stoker::control
