#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::cli {

struct SimulateOptions {
    simulate::Scenario scenario;
    std::vector<std::uint64_t> seeds = {1};
    std::string manifest_path;  // empty: sizes are made up
    bool json = false;
    bool help = false;
};

// kInvalidArgument names the flag and what it can be instead.
Result<SimulateOptions> parse_simulate(const std::vector<std::string_view>& arguments);

std::string simulate_help();

}  // namespace stoker::cli
