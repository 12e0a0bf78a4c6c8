#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "common/base/prng.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/simulate/baselines/residents.h"
#include "sidecar/simulate/baselines/swap_order.h"
#include "sidecar/simulate/virtual_node.h"

namespace stoker::simulate {

// Opportunistic data sampling of Seneca (FAST'26): a resident sample is evicted once every job has
// read it, and a random absent one is fetched in its place, in the background: only such a refill
// is admitted to a full cache. Not thread-safe.
class OdsCache final : public sidecar::EvictionPolicy, public Refiller {
public:
    OdsCache(std::uint64_t samples, std::uint32_t jobs, std::uint64_t seed);

    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;
    void on_read(SampleIndex sample, bool hit) override;

    bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override;

    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;
    void take_refills(std::vector<SampleIndex>& samples) override;

    [[nodiscard]] const Residents& residents() const { return residents_; }

private:
    std::uint64_t samples_;
    std::uint32_t jobs_;
    Prng prng_;
    Residents residents_;
    std::vector<std::uint32_t> reads_;  // by sample: reads since it arrived
    std::vector<Bytes> bytes_;
    std::vector<SampleIndex> used_up_;  // read by every job, still resident
    std::set<SampleIndex> refills_;     // in flight
};

// One job's sampler: replaces a request for an absent sample by one for a resident that the job has
// not read in this epoch, if a few random tries find one. Each sample once per epoch.
class OdsSampler final : public SwapOrder {
public:
    // `cache` must outlive it.
    OdsSampler(
        const OdsCache& cache, std::uint64_t samples, std::uint32_t probes, std::uint64_t seed);

    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;

private:
    const OdsCache& cache_;
    std::uint32_t probes_;
    Prng prng_;
};

}  // namespace stoker::simulate
