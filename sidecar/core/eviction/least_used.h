#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/keyed_heaps.h"

namespace stoker::sidecar {

// Residents in the order of their reads. Whoever may not go counts as read just now: it is about to
// be. O(log n) a call; 20 bytes a sample, whether resident or not, and 24 a resident; one of more
// than 4 GiB counts as 4 GiB.
class LeastUsed : public EvictionPolicy {
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

protected:
    // `frequency`: reads are counted, and who was read less often goes before who was read longer
    // ago; no sample goes for one that was not read more often.
    explicit LeastUsed(bool frequency)
        : frequency_(frequency) {}

private:
    using Heap = KeyedHeaps<ReadKey>;

    ReadKey& key(SampleIndex sample);
    void touch(SampleIndex sample);

    bool frequency_;
    std::vector<ReadKey> keys_;
    Heap residents_{0};
    std::vector<Heap::Candidate> candidates_;  // kept for its memory
    std::uint64_t clock_ = 0;
};

// Least recently used: every sample that comes is kept, the one that was read longest ago goes. The
// usual policy of caches in front of object stores, here for comparison and for access patterns
// with locality. In a uniform random order without locality its hit ratio is w + (1-w)ln(1-w): 2 %
// where never-evict has 20 %.
class Lru final : public LeastUsed {
public:
    Lru()
        : LeastUsed(false) {}
};

// Least frequently used, with counts that survive absence ("perfect" LFU): a sample is kept when it
// was read more often so far than those that would have to go. Among equally often read ones the
// one read longest ago goes first. Where every sample is read once an epoch this never evicts;
// where a job draws some samples more often than others, those stay.
class Lfu final : public LeastUsed {
public:
    Lfu()
        : LeastUsed(true) {}
};

}  // namespace stoker::sidecar
