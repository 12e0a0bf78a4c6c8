#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/keyed_heaps.h"

namespace stoker::sidecar {

// SHADE's cache (FAST 2023): residents in a priority queue and every sample ever seen in a ghost
// queue (metadata only), both ordered by (score, reads). A missed sample displaces the smallest
// residents if its ghost key is larger than theirs; otherwise it is served without being kept. The
// next epoch's draws follow the same scores, so keeping high scores acts as a prefetch.
//
// Scores have a resolution of 0.00003 up to 32 (ln(rank + bias) of batches of 32,768); reads
// saturate at 4,095. 8 bytes per sample and 12 per resident; one of more than 4 GiB counts as 4
// GiB.
class ReplicateEviction final : public EvictionPolicy {
public:
    // `count`: samples of the dataset, if known; allocates for all of them at once.
    explicit ReplicateEviction(std::uint32_t count = 0);

    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;
    void on_read(SampleIndex sample, bool hit) override;

    // Call after each batch, for each sample that it scored.
    void on_score(SampleIndex sample, float score);

    void expect(std::span<const SampleIndex> samples) const override;
    bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override;

    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;

private:
    using Key = std::uint32_t;  // score in the high bits, reads in the low bits

    Key& ghost(SampleIndex sample);
    void set_key(SampleIndex sample, Key key);

    std::vector<Key> ghosts_;  // by sample
    ImportanceHeaps queue_;
    std::vector<ImportanceHeaps::Candidate> candidates_;  // reused buffer
};

}  // namespace stoker::sidecar
