#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/control_link.h"

namespace stoker::control::v1 {
class Grant;
class OperatorMessage;
class SidecarMessage;
}  // namespace stoker::control::v1

// Plain values to and from the wire's. Pure.
namespace stoker::sidecar {

stoker::control::v1::SidecarMessage hello_message(
    const JobConfig& job, const std::vector<DatasetConfig>& datasets);

// Which sketches a stream has heard: the revision by dataset uid and job. Empty for a new stream.
using ToldSketches = std::map<std::pair<std::string, std::string>, std::uint64_t>;

// Masses that are in `told` already are left out; the others are noted there.
stoker::control::v1::SidecarMessage report_message(
    const LinkReport& report, std::uint64_t sequence, ToldSketches& told);

// Weights that are not numbers of 0 or more are left out.
LinkGrant plain_grant(const stoker::control::v1::Grant& grant);

// Pins without a revision, and marks that are too many, are left out.
std::vector<LinkPin> plain_pins(const stoker::control::v1::OperatorMessage& message);

}  // namespace stoker::sidecar
