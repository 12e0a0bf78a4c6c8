#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/report_index.h"

// Measurements from sidecars for the planner's curves and weights. Pure; the order of the reports
// does not matter.
namespace stoker::control {

// Progress of the slowest rank in the job's last epoch, 0..1; nullopt in an earlier epoch, while a
// rank does not report, or if the spec has no number of epochs.
std::optional<double> last_epoch_progress(
    const JobUse& use, const ReportIndex& reports, const Moment& now);

// The job's rank sketch of the dataset for MissCurve::measured(): mean over the leaders on its
// nodes; empty: no measurement.
std::vector<float> measured_sketch(
    const JobUse& use,
    const std::string& dataset_uid,
    const ReportIndex& reports,
    const Moment& now);

// Adds to each grant the cache's value for each job that reads the dataset on that node: the
// bytes/s that the job would read there if it never waited for data, times its weight; 0 for a
// compute-bound job. A job whose profile has no verdict yet counts with the mean rate of the jobs
// there that wait for data. Skips datasets with only one job. Guests are named by job_key_at().
void weigh_jobs(const ClusterView& cluster, std::vector<Grant>& grants);

}  // namespace stoker::control
