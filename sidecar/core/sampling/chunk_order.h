#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Chunk-wise shuffle (DIESEL, ICPP 2020, and docs/design/sampling-windowed.md): shuffles the
// chunks, cuts them into groups of `group`, and shuffles the samples of each group together. Only
// `group` chunks have to be on the node at once; each is read whole and once.
//
// `chunk_of[i]` is the chunk of sample i, below `chunk_count`; chunks may differ in size and be
// empty. A group of 1 reads chunk after chunk; chunk_count or more gives a uniform shuffle; 0
// counts as 1. Deterministic in seed and epoch. O(samples).
std::vector<SampleIndex> chunk_order(
    std::span<const std::uint32_t> chunk_of,
    std::uint32_t chunk_count,
    std::uint32_t group,
    std::uint64_t seed,
    std::uint64_t epoch);

}  // namespace stoker::sidecar
