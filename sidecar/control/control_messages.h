#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/config/sidecar_config.h"
#include "wire/control/report.h"

// Prepares the link's reports. Pure.
namespace stoker::sidecar {

control::Hello make_hello(const JobConfig& job, const std::vector<DatasetConfig>& datasets);

// Sketch revisions sent on a stream, by dataset uid and job. Empty for a new stream.
using ToldSketches = std::map<std::pair<std::string, std::string>, std::uint64_t>;

// Adapts a report to one stream: removes masses that `told` lists, and adds the others to `told`;
// makes errors and keys valid UTF-8 and shortens keys.
void fit_for_stream(control::Report& report, ToldSketches& told);

}  // namespace stoker::sidecar
