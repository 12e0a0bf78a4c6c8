#pragma once

#include <cstdint>

#include "operator/api/document.h"

namespace stoker::control {

// A finished `stoker pack` writes this to its --result-file (cli/stoker/pack_command.cc).
struct PackResult {
    std::int64_t chunks = 0;
    std::int64_t samples = 0;
    std::int64_t bytes = 0;

    bool operator==(const PackResult&) const = default;
};

}  // namespace stoker::control
