#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/stoker/simulate_options.h"
#include "sidecar/simulate/clairvoyance.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::cli {

struct SeededOutcome {
    std::uint64_t seed = 0;
    simulate::Outcome outcome;
};

// Text output: every epoch of the first seed, then the means over all seeds.
std::string simulate_text(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs);

// JSON output: docs/reference/simulate.md names the fields. Ends with a line break.
std::string simulate_json(
    const simulate::Scenario& scenario, const std::vector<SeededOutcome>& runs);

// Results of a run with --policy nopfs, which has the same two output formats.
struct SeededFigures {
    std::uint64_t seed = 0;
    simulate::ClairvoyantFigures figures;
};

std::string clairvoyant_text(
    const SimulateOptions& options, const std::vector<SeededFigures>& runs);
std::string clairvoyant_json(
    const SimulateOptions& options, const std::vector<SeededFigures>& runs);

}  // namespace stoker::cli
