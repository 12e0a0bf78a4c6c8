#pragma once

#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/core/allocation/explain_job.h"

namespace stoker::cli {

// The speed of a job over its cached bytes as a small plot in plain ASCII, 80 columns wide at most,
// with its target marked "O". `points` ascending, at least two. Pure.
std::string plot_curve(const std::vector<control::CurvePoint>& points, Bytes target);

// "1.8Gi/s".
std::string rate_text(double bytes_per_second);

}  // namespace stoker::cli
