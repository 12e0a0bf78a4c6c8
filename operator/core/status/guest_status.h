#pragma once

#include <string>

#include "common/base/bytes.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"

// Status of a job that reads a Dataset of another namespace (docs/adr/0012). Pure.
namespace stoker::control {

// Whether the guest's sidecar reports waiting for a sidecar of the Dataset's namespace on its node:
// of a filler, or of a job in the Dataset's namespace. False if the filler runs and the origin
// fails. `sum` is null until a sidecar reports on the dataset.
bool waits_for_owner(
    const TrainingJobView& view, const ResolvedDataset& dataset, const DatasetTotals* sum);

// The DataReady condition of a guest job for which waits_for_owner() is true.
Condition wait_for_owner(
    const TrainingJobView& view, const ResolvedDataset& dataset, const DatasetTotals& sum);

// Bytes of the dataset on the job's nodes, as reported by the leaders. Sidecars of guests never
// lead; the planner has the reports of the Dataset's namespace.
Bytes resident_bytes(
    const TrainingJobView& view, const std::string& uid, const DatasetTotals& told);

}  // namespace stoker::control
