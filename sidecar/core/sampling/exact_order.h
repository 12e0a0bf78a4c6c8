#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/ids.h"

// Epoch orders: pure functions of count, seed, epoch and world, the same on every machine and the
// same as the client's `stoker.order` (tests/contract/golden/order.json checks both). The layout is
// that of torch's DistributedSampler: one permutation for all ranks, padded or cut to a multiple of
// their number, dealt out in turns.
namespace stoker::sidecar {

using domain::SampleIndex;

// Fisher-Yates shuffle: every order is equally likely.
void shuffle(std::span<SampleIndex> samples, Prng& prng);

// A shuffled 0..count-1. Sample i gets the i-th word of a SplitMix64 stream seeded with seed and
// epoch; the ids sorted by their words (ties by id) are the permutation. O(count log count) time; 4
// bytes per sample and some 100 KB while it runs.
std::vector<SampleIndex> permutation(std::uint32_t count, std::uint64_t seed, std::uint64_t epoch);

// Treatment of the tail if the count does not divide by the number of ranks.
enum class Tail : std::uint8_t {
    kPad,   // repeats the first ids: all ranks read equally many
    kDrop,  // leaves the tail out: all ranks read equally many
};

// Which permutation an epoch has.
enum class Shuffler : std::uint8_t {
    kStoker,  // permutation()
    kTorch,   // torch_permutation(seed + epoch)
};

struct EpochShape {
    std::uint32_t count = 0;  // at least 1
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;
    Tail tail = Tail::kPad;
    bool shuffle = true;
    Shuffler shuffler = Shuffler::kStoker;
};

// Number of ids that each rank reads in an epoch.
std::uint32_t rank_length(const EpochShape& shape);

// The ids that one rank reads in one epoch, in order. `rank` must be below `shape.ranks`.
std::vector<SampleIndex> epoch_order(
    const EpochShape& shape, std::uint64_t epoch, std::uint32_t rank);

// One rank's share of an order for all ranks: every shape.ranks-th id. `order` must have
// shape.count ids.
std::vector<SampleIndex> deal(
    const EpochShape& shape, std::vector<SampleIndex> order, std::uint32_t rank);

// Whether the id at `position` of a rank's order only pads the last round.
inline bool is_padding(const EpochShape& shape, std::uint32_t rank, std::uint64_t position) {
    return position * shape.ranks + rank >= shape.count;
}

}  // namespace stoker::sidecar
