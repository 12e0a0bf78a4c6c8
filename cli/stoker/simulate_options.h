#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "sidecar/simulate/clairvoyance.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::cli {

struct SimulateOptions {
    simulate::Scenario scenario;
    simulate::ClairvoyantSpec clairvoyant;  // of policy nopfs
    std::vector<std::uint64_t> seeds = {1};
    std::string manifest_path;  // empty: sizes are made up
    bool json = false;
    bool help = false;
};

// kInvalidArgument names the flag and what it can be instead.
Result<SimulateOptions> parse_simulate(const std::vector<std::string_view>& arguments);

// Is it for one job of several ranks that knows its future (--policy nopfs)?
bool is_clairvoyant(const SimulateOptions& options);

std::string simulate_help();

}  // namespace stoker::cli
