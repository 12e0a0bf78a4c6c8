#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/simulate/baselines/swap_order.h"

namespace stoker::simulate {

// Substitutable hits of Quiver (FAST'20): a job requests `over_request` times a batch and takes
// resident samples first; the rest stays for later in the epoch. Each sample once per epoch. Our
// reconstruction; it omits Quiver's chunks and its benefit-aware division of space.
class QuiverSampler final : public SwapOrder {
public:
    // `node` must outlive it.
    QuiverSampler(
        const sidecar::Residency& node,
        std::uint64_t samples,
        std::uint32_t over_request,
        std::uint64_t seed)
        : SwapOrder(samples, seed),
          node_(node),
          over_request_(over_request) {}

    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;

private:
    const sidecar::Residency& node_;
    std::uint32_t over_request_;
    std::vector<SampleIndex> wanted_;
};

}  // namespace stoker::simulate
