#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/keyed_heaps.h"

namespace stoker::simulate {

using domain::SampleIndex;

// Belady's MIN with bypass, for one job that reads every sample once per epoch: keeps the samples
// whose next read is nearest. The caller supplies every epoch's order, hence the future. No policy
// can have more hits on the same stream: it is an upper bound for tests. O(log n) per call.
class Belady final : public sidecar::EvictionPolicy {
public:
    // The job's read order in an epoch; pure.
    using OrderOf = std::function<std::vector<SampleIndex>(std::uint64_t epoch)>;

    Belady(std::uint64_t samples, OrderOf order_of);

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
    void begin_epoch(std::uint64_t epoch);
    void index(std::uint64_t epoch, std::vector<std::uint64_t>& positions) const;

    using Heap = sidecar::KeyedHeaps<std::uint64_t>;

    OrderOf order_of_;
    std::uint64_t samples_;
    std::uint64_t reads_ = 0;
    std::vector<std::uint64_t> this_epoch_;  // by sample: its position, counted over all epochs
    std::vector<std::uint64_t> next_epoch_;
    std::vector<std::uint64_t> next_use_;
    Heap farthest_;                            // residents; key: the complement of their next use
    std::vector<Heap::Candidate> candidates_;  // reused buffer
};

}  // namespace stoker::simulate
