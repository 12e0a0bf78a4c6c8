#pragma once

#include <cstdint>
#include <vector>

#include "sidecar/simulate/baselines/swap_order.h"

namespace stoker::simulate {

// Substitutable hits of Quiver (FAST'20): a job asks for `over_request` times a batch and takes
// what is resident first; the rest stays for later in the epoch. Each sample once per epoch. Our
// reconstruction; Quiver's chunks and its benefit-aware division of space are left out.
class QuiverSampler final : public SwapOrder {
public:
    QuiverSampler(std::uint64_t samples, std::uint32_t over_request, std::uint64_t seed)
        : SwapOrder(samples, seed),
          over_request_(over_request),
          stored_(samples) {}

    void on_stored(SampleIndex sample) override { stored_[sample] = true; }

    void on_gone(SampleIndex sample) override { stored_[sample] = false; }

    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;

private:
    std::uint32_t over_request_;
    std::vector<bool> stored_;
    std::vector<SampleIndex> wanted_;
};

}  // namespace stoker::simulate
