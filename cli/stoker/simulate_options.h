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
    simulate::ClairvoyantSpec clairvoyant;  // for policy nopfs
    std::vector<std::uint64_t> seeds = {1};
    std::string manifest_path;  // empty: generated sizes
    bool json = false;
    bool help = false;
};

// kInvalidArgument names the flag and its valid values.
Result<SimulateOptions> parse_simulate(const std::vector<std::string_view>& arguments);

// True for --policy nopfs: one job of several ranks that knows its future reads.
bool is_clairvoyant(const SimulateOptions& options);

std::string simulate_help();

}  // namespace stoker::cli
