#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/domain/ids.h"
#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// The samples of a rank's epoch in order, and for each group that is best fetched together the
// position after its last sample. Without groups: no positions.
struct GroupedOrder {
    std::vector<SampleIndex> samples;
    std::vector<std::uint32_t> ends;
};

// Chunk-wise shuffle (DIESEL, ICPP 2020, and docs/design/sampling-windowed.md): shuffles the
// chunks, cuts them into one share for each rank and each share into groups of `group` chunks, and
// shuffles the samples inside each group. Only `group` chunks of each rank have to be on its node
// at once; each chunk is read whole and once.
//
// All ranks read equally many samples, so a chunk at the border of two shares is divided between
// them. A rank whose share is one short reads a sample of another rank at its end, again
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
