#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/core/allocation/water_fill.h"

namespace stoker::control {

// The best amounts of a small problem whose items may have several accounts: a linear program, one
// variable a piece, one row a node, an account, and the common room; concave values keep the pieces
// in their order. Rounded down to whole parts, so a few bytes of room may be left. None where the
// problem is too large for it. Private to water_fill. Pure, deterministic.
//
// The simplex method for bounded variables: Dantzig, "Upper bounds, secondary constraints, and
// block triangularity in linear programming" (1955).
std::optional<std::vector<std::uint64_t>> fill_exactly(const FillProblem& problem);

}  // namespace stoker::control
