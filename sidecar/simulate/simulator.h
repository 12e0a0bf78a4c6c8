#pragma once

#include "common/base/result.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

// Runs the scenario from beginning to end in simulated time, with the samplers and eviction
// policies of the sidecar. Deterministic: equal scenarios give equal outcomes, bit for bit.
// kInvalidArgument: what check_scenario() says.
Result<Outcome> run(const Scenario& scenario);

}  // namespace stoker::simulate
