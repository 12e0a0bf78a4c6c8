#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/sidecar_report.h"
#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/training_job_view.h"

// Pins one revision per attempt: all its ranks read the same list of samples. Pure.
namespace stoker::control {

// Keeps the dataset's revision in the status if it is from this attempt; else takes it from the
// lowest rank with a fresh report of one. Treats the first changed object likewise. `reports`:
// sidecar reports of the attempt.
void note_revision(
    const std::string& dataset_uid,
    std::int64_t attempt,
    const std::vector<SidecarReport>& reports,
    const Moment& now,
    JobDatasetStatus& status);

// Clears the revision for an attempt without pods: its next pods read the revision that they list,
// even if earlier pods read another one before a suspension.
void forget_revision(JobDatasetStatus& status);

// Pins to send to the attempt's sidecars once `status` is written. `status` was made from `view`.
// The pods of an attempt keep the Dataset that they began with when another one takes its name, so
// the pin also goes out under the uid that they mount.
AttemptPins pins_of(const TrainingJobView& view, const TrainingJobStatus& status);

// Why the attempt cannot continue: a rank lists another revision than the pinned one. Returns a
// sentence about the lowest such rank; nullopt: no rank does. `reports`: sidecar reports of the
// attempt.
std::optional<std::string> find_origin_change(
    const TrainingJobView& view, const std::vector<SidecarReport>& reports, const Moment& now);

// The condition OriginUnchanged. `datasets`: of the new status, after note_revision(). A change
// that ended an attempt is reported until the next attempt's revisions are known.
Condition judge_origin(
    const TrainingJobView& view,
    const Lifecycle& lifecycle,
    const std::vector<JobDatasetStatus>& datasets,
    const Moment& now);

}  // namespace stoker::control
