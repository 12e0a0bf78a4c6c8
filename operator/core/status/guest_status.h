#pragma once

#include <string>

#include "common/base/bytes.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"

// The status of a job that reads a Dataset of another namespace (docs/adr/0012). Pure.
namespace stoker::control {

// The guest's sidecar says that it waits: a sidecar of the Dataset's namespace has to serve the
// node first, a filler or one of the owner's jobs. False for an origin that fails for a filler.
// `sum` is null while no sidecar has reported on the dataset.
bool waits_for_owner(
    const TrainingJobView& view, const ResolvedDataset& dataset, const DatasetTotals* sum);

// The condition DataReady of such a job.
Condition wait_for_owner(
    const TrainingJobView& view, const ResolvedDataset& dataset, const DatasetTotals& sum);

// Bytes of the dataset on the job's nodes, told by their leaders. A guest's sidecars never lead:
// the owner's have told the planner.
Bytes resident_bytes(
    const TrainingJobView& view, const std::string& uid, const DatasetTotals& told);

}  // namespace stoker::control
