#pragma once

#include "common/base/result.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

// Runs the scenario from start to end in virtual time, with the sidecar's own engine.
// Deterministic: equal scenarios give equal outcomes, bit for bit. kInvalidArgument: an error of
// check_scenario(), or of the sidecar about a contract's parameters.
Result<Outcome> run(const Scenario& scenario);

}  // namespace stoker::simulate
