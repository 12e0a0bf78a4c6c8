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

// Number of reads of samples by readers over a whole run; a reader is a rank, or all ranks of a node.
// 2 bytes per reader and sample; counts saturate at 65535.
class AccessCounts {
public:
    // Every rank is a reader, and every sample is counted.
    AccessCounts(const EpochShape& shape, std::uint64_t epochs);

    // Only samples [first, first + samples); at() numbers them from 0. `reader_of`: below `readers`,
    // by rank. The epochs are replayed for each object.
    AccessCounts(
        const EpochShape& shape,
        std::uint64_t epochs,
        std::span<const std::uint32_t> reader_of,
        std::uint32_t readers,
        SampleIndex first,
        std::uint32_t samples);

    [[nodiscard]] std::uint32_t readers() const { return readers_; }

    [[nodiscard]] std::uint32_t samples() const { return samples_; }

    [[nodiscard]] std::uint16_t at(std::uint32_t reader, SampleIndex sample) const {
        return counts_[std::size_t{reader} * samples_ + sample];
    }

private:
    void count(std::uint32_t reader, SampleIndex sample);

    std::uint32_t readers_;
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

// Assigns each sample one owner: of the readers with room, the one that reads it most often. If the
// readers' total room suffices, every sample has an owner and is read from the origin once.
// (place_own() alone keeps some samples twice and others nowhere.) `capacity`: samples per reader.
// Everyone computes the same result. kNoOwner: no room.
std::vector<std::uint32_t> place_pooled(const AccessCounts& counts, std::uint32_t capacity);

constexpr std::uint32_t kPlacedEpochsMax = 256;

// place_pooled() for a dataset shared by `members` nodes: each owns at most ceil(samples / members)
// samples. `member_of`: below `members`, by rank. Only the first kPlacedEpochsMax epochs count, so
// that no setting occupies a core for hours; by then a node reads little more of its samples than of
// others.
//
// Costs: large datasets are placed in blocks, for each of which the epochs are replayed, so that it
// never holds more than 256 MiB of counts, 4 bytes a sample for an epoch's order, and 14 bytes for
// each sample of a block; 2 bytes a sample remain. 10^7 samples are one block for up to 13 members
// and 5 blocks for 64; each block takes the time of the epochs' permutations.
std::vector<std::uint16_t> owners_by_reads(
    const EpochShape& shape,
    std::uint64_t epochs,
    std::span<const std::uint32_t> member_of,
    std::uint16_t members);

// Binomial(epochs, 1/ranks): expected number of `samples` that one rank reads more than `threshold`
// times.
double expected_above(
    double samples, std::uint64_t epochs, std::uint32_t ranks, std::uint64_t threshold);

// Share of a rank's reads that its own most frequent samples serve when it keeps `kept_share` of
// the dataset (0 to 1); a random choice would serve `kept_share`.
double expected_local_share(std::uint64_t epochs, std::uint32_t ranks, double kept_share);

}  // namespace stoker::sidecar
