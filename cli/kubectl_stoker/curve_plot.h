#pragma once

#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/core/allocation/explain_job.h"

namespace stoker::cli {

// Plots a job's ingest rate over its cached bytes in plain ASCII, at most 80 columns wide, with its
// target marked "O". `points` ascending, at least two. Pure.
std::string plot_curve(const std::vector<control::CurvePoint>& points, Bytes target);

// The prediction with this many cached bytes, between the two nearest points of plot_curve()'s
// `points`.
control::CurvePoint point_at(const std::vector<control::CurvePoint>& points, Bytes cached);

// Bytes as a coordinate of a plot.
double to_double(Bytes bytes);

// Formats a rate: "1.8Gi/s".
std::string rate_text(double bytes_per_second);

}  // namespace stoker::cli
