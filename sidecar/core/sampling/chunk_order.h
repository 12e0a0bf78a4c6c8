#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/domain/ids.h"
#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// The samples of a rank's epoch in order, and the positions behind the last sample of each group
// that is best fetched together. Without groups: no ends.
struct GroupedOrder {
    std::vector<SampleIndex> samples;
    std::vector<std::uint32_t> ends;
};

// Chunk-wise shuffle (DIESEL, ICPP 2020, and docs/design/sampling-windowed.md): shuffles the chunks,
// cuts them into one share for each rank and the shares into groups of `group` chunks, and shuffles
// the samples of each group together. Only `group` chunks of each rank have to be on its node at
// once; each is read whole and once.
//
// All ranks have equally many samples, so a chunk at the border of two shares is divided between
// them. A rank that would have one less repeats at its end a sample of another rank
// (is_padding()), or the tail is left out (Tail::kDrop).
//
// `chunk_of[i]` is the chunk of sample i, below `chunk_count`; chunks may differ in size and be
// empty. A group of 1 reads chunk after chunk; chunk_count or more gives a uniform shuffle of the
// share; 0 counts as 1. Deterministic in seed and epoch. O(samples).
GroupedOrder chunk_order(
    std::span<const std::uint32_t> chunk_of,
    std::uint32_t chunk_count,
    std::uint32_t group,
    const EpochShape& shape,
    std::uint64_t epoch,
    std::uint32_t rank = 0);

}  // namespace stoker::sidecar
