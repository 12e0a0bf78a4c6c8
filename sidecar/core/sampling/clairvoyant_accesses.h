#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "sidecar/core/sampling/exact_order.h"

// What a seeded job will read, known before it starts (NoPFS, SC 2021): every rank can replay every
// rank's epochs. Pure functions.
namespace stoker::sidecar {

// Calls visit(rank, sample, position in the rank's order) for every read of one epoch, in the turns
// of the ranks; the first ids come again where the last turn is not full.
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

// How often each rank will read each sample over a whole run: 2 bytes a rank and sample.
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

// For each rank and sample, after how many reads of its own the rank reads it first; kNeverRead.
// 8 bytes a rank and sample.
std::vector<std::vector<std::uint64_t>> first_uses(const EpochShape& shape, std::uint64_t epochs);

// Where a rank keeps what: tiers are its storage classes, fastest first.
struct TierPlacement {
    std::vector<std::vector<SampleIndex>>
        tiers;  // in order of first use, so that filling prefetches
};

// The rank's own most frequent samples, in the fastest tier first (NoPFS). Ties: first use, then
// id. Samples that it never reads are not kept.
TierPlacement place_own(
    const AccessCounts& counts,
    std::uint32_t rank,
    std::span<const std::uint64_t> first_use,
    std::span<const Bytes> sizes,
    std::span<const Bytes> capacities);

constexpr std::uint32_t kNoOwner = UINT32_MAX;

// One owner for each sample: the rank that reads it most often, of those that have room; so all
// samples have one where the ranks' room together suffices, and each is read from the origin once.
// (place_own() alone keeps some twice and others nowhere.) `capacity` in samples, each rank's.
// Everybody computes the same. kNoOwner: no room.
std::vector<std::uint32_t> place_pooled(const AccessCounts& counts, std::uint32_t capacity);

// Binomial(epochs, 1/ranks): how many of `samples` one rank reads more than `threshold` times.
double expected_above(
    double samples, std::uint64_t epochs, std::uint32_t ranks, std::uint64_t threshold);

// Share of a rank's reads that its own most frequent samples serve when it keeps `kept_share` of
// the dataset (0 to 1); a random choice would serve `kept_share`.
double expected_local_share(std::uint64_t epochs, std::uint32_t ranks, double kept_share);

}  // namespace stoker::sidecar
