#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/sidecar_report.h"
#include "operator/api/training_job.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

// An Event about the TrainingJob. `warning`: type Warning, else Normal.
struct JobEvent {
    bool warning = false;
    std::string reason;
    std::string message;

    bool operator==(const JobEvent&) const = default;
};

struct TrainingJobPlan {
    TrainingJobStatus status;               // written first, if it differs from the present one
    std::vector<Action> actions;            // done next, in this order
    std::vector<JobEvent> events;           // sent last, once the status is written
    AttemptPins pins;                       // sent to the sidecars, once the status is written
    std::set<std::string> missing_peers;    // datasets whose pins wait (PinHold)
    std::optional<Duration> requeue_after;  // plan again then, even if nothing changes

    bool operator==(const TrainingJobPlan&) const = default;
};

// Plans one TrainingJob at one moment. Pure. The order of the view's lists does not matter. After a
// plan is carried out, the next one has the same status and no actions.
TrainingJobPlan plan_training_job(const TrainingJobView& view, const Moment& now);

}  // namespace stoker::control
