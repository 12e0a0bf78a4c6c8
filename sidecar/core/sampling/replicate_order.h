#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/ids.h"

// The order in which the ranks of a replicating job read the draws of an epoch. Pure functions.
namespace stoker::sidecar {

using domain::SampleIndex;

// Arranges draws so that deal() gives all copies of a sample to one rank, hence to one node, and
// each rank an equal share of the most drawn samples: the next most drawn sample goes to the rank
// with the most room. Copies are split only if no rank has room for all of them. O(n log n); up to
// 8 more bytes per sample while it runs.
std::vector<SampleIndex> gather_copies(
    std::vector<SampleIndex> draws, std::uint32_t sample_count, std::uint32_t ranks);

// Moves the draws into `blocks` blocks, so that all copies of a sample are in one block; inside a
// block, the order stays random if it was. The block of a sample depends on the generator only, not
// on the draws. In place, O(n).
void gather_repeats(std::span<SampleIndex> draws, std::uint32_t blocks, const Prng& prng);

}  // namespace stoker::sidecar
