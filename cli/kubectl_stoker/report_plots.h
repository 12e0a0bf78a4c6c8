#pragma once

#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/core/allocation/explain_job.h"

namespace stoker::cli {

// The job's predicted rate over its cached bytes as an SVG element, with a mark at `target`.
// `points` ascending, at least two.
std::string curve_svg(const std::vector<control::CurvePoint>& points, Bytes target);

// Bytes by source as one horizontal bar.
struct BarPart {
    std::string name;
    Bytes bytes{};
    const char* colour = "";
};

// "" if all parts are zero.
std::string bar_svg(const std::vector<BarPart>& parts);

}  // namespace stoker::cli
