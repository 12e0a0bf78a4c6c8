#pragma once

#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "sidecar/config/sidecar_config.h"

namespace stoker::attached {

// Begins a program beside the sidecar: parses the arguments and reads the sidecar's settings. The
// error is the exit status if the program must end. Messages go to stderr.
tl::expected<sidecar::SidecarConfig, int> begin_attached(
    std::string_view name, const std::vector<std::string_view>& arguments);

}  // namespace stoker::attached
