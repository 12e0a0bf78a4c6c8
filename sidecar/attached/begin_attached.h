#pragma once

#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "sidecar/config/sidecar_config.h"

namespace stoker::attached {

// Starts a program that runs beside the sidecar: parses the arguments and reads the sidecar's
// settings. The error is the exit status with which the program must end. Messages go to stderr.
tl::expected<sidecar::SidecarConfig, int> begin_attached(
    std::string_view name, const std::vector<std::string_view>& arguments);

}  // namespace stoker::attached
