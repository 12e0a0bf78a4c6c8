#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/controllers/controller_parts.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// Reads workloads of other controllers, and creates their TrainingJobs. The operator does not watch
// these kinds: which of them a cluster has is unknown. Thread-safe.
class WorkloadReader {
public:
    explicit WorkloadReader(const ControllerParts& parts);

    // The job's workload; read at most every ten seconds. A workload that cannot be read counts as
    // still running.
    WorkloadView read(const TrainingJob& job);

    // If the webhook is on: creates the TrainingJob of this name, which does not exist, if living
    // pods with its label name a workload (kWorkloadAnnotation) that exists. A workload is adopted
    // once in five minutes, so that a TrainingJob whose owner is being deleted does not come back.
    // Errors: the API server's.
    Status adopt(const ObjectKey& key);

private:
    struct Known {
        WorkloadView view;
        TimePoint until{};
    };

    struct State {
        std::map<std::string, Known> known;        // by the workload's uid
        std::map<std::string, TimePoint> adopted;  // by the workload's uid
    };

    bool may_adopt(const WorkloadRef& workload);
    bool exists(const std::string& ns, const WorkloadRef& workload);
    void tell_refusal(const ObjectKey& key, const WorkloadRef& workload, const Error& error);

    ControllerParts parts_;
    Guarded<State> state_;
};

}  // namespace stoker::control
