#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/config/sidecar_config.h"
#include "wire/control/report.h"

// Contents of the link's messages. Pure.
namespace stoker::sidecar {

control::Hello make_hello(const JobConfig& job, const std::vector<DatasetConfig>& datasets);

// Which sketches a stream has heard: the revision by dataset uid and job. Empty for a new stream.
using ToldSketches = std::map<std::pair<std::string, std::string>, std::uint64_t>;

// Makes a report what one stream is sent: masses that are in `told` already are left out, the
// others are noted there; errors and keys become UTF-8, keys short.
void fit_for_stream(control::Report& report, ToldSketches& told);

}  // namespace stoker::sidecar
