#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "sidecar/core/sampling/exact_order.h"

// The reads of a seeded job, known before it starts (NoPFS, SC 2021): every rank can replay every
// rank's epochs. Pure functions.
namespace stoker::sidecar {

// Calls visit(rank, sample, position in the rank's order) for every read of one epoch, rank after
// rank in each round; the first ids repeat if the last round is not full.
template <class Visit>
void for_each_read(const EpochShape& shape, std::uint64_t epoch, const Visit& visit) {
    EpochShape whole = shape;
    whole.ranks = 1;
    const auto order = epoch_order(whole, epoch, 0);
    const std::uint64_t total = std::uint64_t{rank_length(shape)} * shape.ranks;
    for (std::uint64_t read = 0; read < total; ++read) {
        const auto rank = static_cast<std::uint32_t>(read % shape.ranks);
        visit(rank, order[read % order.size()], read / shape.ranks);
    }
}

// Number of reads of each sample by each rank over a whole run: 2 bytes per rank and sample.
class AccessCounts {
public:
    // Replays `epochs` epochs; counts saturate at 65535.
    AccessCounts(const EpochShape& shape, std::uint64_t epochs);

    [[nodiscard]] std::uint32_t ranks() const { return ranks_; }

    [[nodiscard]] std::uint32_t samples() const { return samples_; }

    [[nodiscard]] std::uint16_t at(std::uint32_t rank, SampleIndex sample) const {
        return counts_[std::size_t{rank} * samples_ + sample];
    }

private:
    std::uint32_t ranks_;
    std::uint32_t samples_;
    std::vector<std::uint16_t> counts_;
};

constexpr std::uint64_t kNeverRead = UINT64_MAX;

// For each rank and sample, the number of the rank's own reads before it reads the sample first; or
// kNeverRead. 8 bytes per rank and sample.
std::vector<std::vector<std::uint64_t>> first_uses(const EpochShape& shape, std::uint64_t epochs);

// Samples that a rank keeps in each tier (storage class), fastest first.
struct TierPlacement {
    std::vector<std::vector<SampleIndex>>
        tiers;  // in order of first use, so filling them prefetches
};

// The rank's own most frequent samples, the fastest tier first (NoPFS). Ties: first use, then id.
// Omits samples that it never reads.
TierPlacement place_own(
    const AccessCounts& counts,
    std::uint32_t rank,
    std::span<const std::uint64_t> first_use,
    std::span<const Bytes> sizes,
    std::span<const Bytes> capacities);

constexpr std::uint32_t kNoOwner = UINT32_MAX;

// Assigns each sample one owner: of the ranks with room, the one that reads it most often. If the
// ranks' total room suffices, every sample has an owner and is read from the origin once.
// (place_own() alone keeps some samples twice and others nowhere.) `capacity`: samples per rank.
// Every rank computes the same result. kNoOwner: no room.
std::vector<std::uint32_t> place_pooled(const AccessCounts& counts, std::uint32_t capacity);

// Binomial(epochs, 1/ranks): expected number of `samples` that one rank reads more than `threshold`
// times.
double expected_above(
    double samples, std::uint64_t epochs, std::uint32_t ranks, std::uint64_t threshold);

// Share of a rank's reads that its own most frequent samples serve when it keeps `kept_share` of
// the dataset (0 to 1); a random choice would serve `kept_share`.
double expected_local_share(std::uint64_t epochs, std::uint32_t ranks, double kept_share);

}  // namespace stoker::sidecar
