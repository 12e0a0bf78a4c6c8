#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sidecar/simulate/scenario.h"

namespace stoker::cli {

struct SeededOutcome {
    std::uint64_t seed = 0;
    simulate::Outcome outcome;
};

// For people: every epoch of the first seed, then the means of all seeds.
std::string simulate_text(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs);

// For programs: docs/reference/simulate.md names the fields. Ends with a line break.
std::string simulate_json(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs);

}  // namespace stoker::cli
