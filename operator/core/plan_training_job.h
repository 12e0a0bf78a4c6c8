#pragma once

#include <optional>
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
    TrainingJobStatus status;      // written first, where it differs from the one that is there
    std::vector<Action> actions;   // done next, in this order
    std::vector<JobEvent> events;  // told last, once the status is written
    AttemptPins pins;              // told to the sidecars, once the status is written
    std::optional<Duration> requeue_after;  // plan again then, even if nothing changes

    bool operator==(const TrainingJobPlan&) const = default;
};

// Everything about one TrainingJob at one moment. Pure; the order of the view's lists does not
// matter; a plan that was carried out plans no actions and the same status.
TrainingJobPlan plan_training_job(const TrainingJobView& view, const Moment& now);

}  // namespace stoker::control
