#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/control_link.h"

namespace stoker::control::v1 {
class Grant;
class SidecarMessage;
}  // namespace stoker::control::v1

// Plain values to and from the wire's. Pure.
namespace stoker::sidecar {

stoker::control::v1::SidecarMessage hello_message(
    const JobConfig& job, const std::vector<DatasetConfig>& datasets);

stoker::control::v1::SidecarMessage report_message(
    const LinkReport& report, std::uint64_t sequence);

LinkGrant plain_grant(const stoker::control::v1::Grant& grant);

}  // namespace stoker::sidecar
