#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"

namespace stoker::sidecar {

// Least recently used: every sample that comes is kept, the one that was read longest ago goes. The
// usual policy of caches in front of object stores, here for comparison and for access patterns
// with locality. In a uniform random order without locality its hit ratio is w + (1-w)ln(1-w): 2 %
// where never-evict has 20 %.
//
// Whoever may not go counts as read just now: it is about to be. O(1) a call, 16 bytes a sample.
class Lru final : public EvictionPolicy {
public:
    Lru();

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
    // A ring through all residents in the order of their last reads; place 0 is its head, sample i
    // has place i+1.
    struct Place {
        std::uint32_t newer = 0;
        std::uint32_t older = 0;
        Bytes bytes{};  // zero: not resident
    };

    void append(std::uint32_t place);
    void take_out(std::uint32_t place);

    std::vector<Place> ring_;
};

}  // namespace stoker::sidecar
