#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/keyed_heaps.h"
#include "sidecar/core/eviction/reads_left.h"

namespace stoker::sidecar {

// The cache of a job with the contract `replicate`, whose draws of the epoch are known. A resident
// that the job will read again in this epoch saves a fetch for certain; any other one saves a fetch
// if the next epoch draws it, which is more likely with a higher score. So only residents that will
// not be read again in this epoch are evicted, the lowest (score, reads) first. A missed sample
// that will be read again displaces any of them. Another missed sample displaces those with a lower
// (score, reads) than its own; if there are none, it is served without being kept.
//
// SHADE (FAST 2023) orders by (score, reads) alone: this policy without reads left. As there, the
// keys of all samples ever seen are kept (its ghost cache).
//
// Scores have a resolution of 0.00006 up to 32 (ln(rank + bias) of batches of 16,384); reads
// saturate at 4,095. 8 bytes per sample and 12 per resident; one of more than 4 GiB counts as 4
// GiB.
class ReplicateEviction final : public EvictionPolicy {
public:
    // `count`: samples of the dataset, if known; allocates for all of them at once. `left`: reads
    // left of all samples; nullptr: none.
    explicit ReplicateEviction(
        std::uint32_t count = 0, std::shared_ptr<const ReadsLeft> left = nullptr);

    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;

    // Records a read. Call it after ReadsLeft::on_read().
    void on_read(SampleIndex sample, bool hit) override;

    // Sets a sample's score. Call it after each batch, for each sample that the batch scored.
    void on_score(SampleIndex sample, float score);

    // Call when reads left were added or cleared, when an epoch begins. O(n log n) for n residents.
    void refresh();

    void expect(std::span<const SampleIndex> samples) const override;
    bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override;

    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;

private:
    // Score in the upper bits, reads in the lower ones. Kept for all samples, also absent ones
    // (ghosts). In the queue the highest bit is set while a read is left.
    using Key = std::uint32_t;

    Key& ghost(SampleIndex sample);
    [[nodiscard]] std::uint32_t left(SampleIndex sample) const;
    [[nodiscard]] Key key(SampleIndex sample) const;
    void set_ghost(SampleIndex sample, Key ghost);

    std::shared_ptr<const ReadsLeft> left_;  // reads left, of samples below `counted_`
    std::uint32_t counted_ = 0;
    std::vector<Key> ghosts_;  // by sample: its key, also while it is not resident
    ImportanceHeaps queue_;
    std::vector<ImportanceHeaps::Candidate> candidates_;  // reused buffer
};

}  // namespace stoker::sidecar
