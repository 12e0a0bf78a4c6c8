#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// All draws of the rank in the epoch, in batches.
inline std::vector<Draw> whole_epoch(Sampler& sampler, std::uint32_t rank, std::uint64_t epoch) {
    std::vector<Draw> draws;
    sampler.begin_epoch(rank, epoch, 0);
    std::size_t before = 0;
    do {
        before = draws.size();
        sampler.draw(rank, 64, draws);
    } while (draws.size() > before);
    return draws;
}

}  // namespace stoker::sidecar
