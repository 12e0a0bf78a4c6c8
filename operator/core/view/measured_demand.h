#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"

// What sidecars have measured of a job that the planner's curves and weights are made of. Pure; the
// order of the reports does not matter.
namespace stoker::control {

// How far the job is in its last epoch, 0..1, the slowest rank's; none in an earlier epoch, while a
// rank is silent, or where the job's spec does not say how many epochs it means to run.
std::optional<double> last_epoch_progress(
    const JobUse& use, const std::vector<SidecarReport>& reports, const Moment& now);

// How unevenly the job reads the dataset: the mean of what the leaders on its nodes say, for
// MissCurve::measured(); empty: nobody has measured it.
std::vector<float> measured_sketch(
    const JobUse& use,
    const std::string& dataset_uid,
    const std::vector<SidecarReport>& reports,
    const Moment& now);

// Adds to each grant what the cache is worth to each job that reads the dataset on that node: bytes
// a second that it would read there if its data were never late, times its weight; 0 for a
// compute-bound one. Jobs without a profile are not named. Nothing where only one job reads it.
// Guests are named by job_key_at().
void weigh_jobs(const ClusterView& cluster, std::vector<Grant>& grants);

}  // namespace stoker::control
