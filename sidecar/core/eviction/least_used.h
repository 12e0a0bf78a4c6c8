#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/keyed_heaps.h"

namespace stoker::sidecar {

// Residents in the order of their reads. A resident that may not be evicted now counts as just
// read, because it soon will be read. O(log n) per call; 20 bytes per sample, resident or not, and
// 24 per resident; a sample of more than 4 GiB counts as 4 GiB.
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
    // `frequency`: order by number of reads, then by time of the last read; a sample is then
    // evicted only for a sample that was read more often.
    explicit LeastUsed(bool frequency)
        : frequency_(frequency) {}

private:
    using Heap = KeyedHeaps<ReadKey>;

    ReadKey& key(SampleIndex sample);
    void touch(SampleIndex sample);

    bool frequency_;
    std::vector<ReadKey> keys_;
    Heap residents_{0};
    std::vector<Heap::Candidate> candidates_;  // reused buffer
    std::uint64_t clock_ = 0;
};

// Least recently used: keeps every new sample and evicts the one that was read longest ago. The
// usual policy of caches in front of object stores, here for comparison and for access patterns
// with locality. In a uniform random order its hit ratio is w + (1-w)ln(1-w) if a share w of the
// dataset fits: 2 % where never-evict has w = 20 %.
class Lru final : public LeastUsed {
public:
    Lru()
        : LeastUsed(false) {}
};

// Least frequently used, with counts that survive eviction ("perfect" LFU): keeps a sample if it
// was read more often than its victims; ties evict the one read longest ago. It never evicts while
// every sample is read once per epoch; under importance sampling the samples drawn most often stay.
class Lfu final : public LeastUsed {
public:
    Lfu()
        : LeastUsed(true) {}
};

}  // namespace stoker::sidecar
