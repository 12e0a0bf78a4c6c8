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

// Opportunistic data sampling of Seneca (FAST'26): a resident sample is read once by every job and
// then given up, and a random absent one is fetched in its place, in the background: only such a
// refill gets room in a full cache. Not thread-safe.
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
    std::vector<std::uint32_t> reads_;  // by resident: since it came
    std::vector<Bytes> bytes_;
    std::vector<SampleIndex> used_up_;  // read by every job, and still here
    std::set<SampleIndex> refills_;     // on their way
};

// One job's side: a request for an absent sample is swapped with one for a resident that the job
// has not read in this epoch, where a few random looks find one. Each sample once per epoch.
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
