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

// One revision an attempt: what all its ranks read, and what is said when they cannot. Pure.
namespace stoker::control {

// Keeps the dataset's revision in the status while it is this attempt's; else takes the one that
// the lowest rank among the fresh reports tells, if one does. The same for the first object that
// was found changed. `reports`: of the attempt.
void note_revision(
    const std::string& dataset_uid,
    std::int64_t attempt,
    const std::vector<SidecarReport>& reports,
    const Moment& now,
    JobDatasetStatus& status);

// For an attempt whose pods are all still to come: it reads what they list, also where pods of it
// have read another revision before a suspension.
void forget_revision(JobDatasetStatus& status);

// The pins that the attempt's sidecars are told once `status` is written. `status` was made from
// `view`.
AttemptPins pins_of(const TrainingJobView& view, const TrainingJobStatus& status);

// Why the attempt cannot go on: a rank lists another revision than the pinned one. A sentence, for
// the lowest rank that says so; nullopt: none does. `reports`: of the attempt.
std::optional<std::string> find_origin_change(
    const TrainingJobView& view, const std::vector<SidecarReport>& reports, const Moment& now);

// The condition OriginUnchanged. `datasets`: of the status to be, after note_revision(). A
// change that ended an attempt stands until the next attempt's revisions are known.
Condition judge_origin(
    const TrainingJobView& view,
    const Lifecycle& lifecycle,
    const std::vector<JobDatasetStatus>& datasets,
    const Moment& now);

}  // namespace stoker::control
