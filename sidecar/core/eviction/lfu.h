#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"

namespace stoker::sidecar {

// Least frequently used, with counts that survive absence ("perfect" LFU): a sample is kept when it
// was read more often so far than those that would have to go. Among equally often read ones the
// one read longest ago goes first. Where every sample is read once an epoch this never evicts;
// where a job draws some samples more often than others, those stay.
//
// Whoever may not go counts as read just now. O(log n) a call; 24 bytes a sample, whether resident
// or not.
class Lfu final : public EvictionPolicy {
public:
    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;
    void on_read(SampleIndex sample, bool hit) override;
    bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override;
    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;

private:
    struct Entry {
        std::uint32_t reads = 0;
        std::uint32_t heap_at = 0;  // position in heap_ plus one; 0: not resident
        std::uint64_t read_at = 0;  // on the clock of reads
        Bytes bytes{};
    };

    Entry& entry(SampleIndex sample);
    [[nodiscard]] bool goes_before(SampleIndex a, SampleIndex b) const;
    void push(SampleIndex sample);
    void remove_at(std::size_t at);
    void sift_up(std::size_t at);
    void sift_down(std::size_t at);
    void put(std::size_t at, SampleIndex sample);

    std::vector<Entry> entries_;
    std::vector<SampleIndex> heap_;  // the residents, the one that goes first on top
    std::uint64_t clock_ = 0;
};

}  // namespace stoker::sidecar
