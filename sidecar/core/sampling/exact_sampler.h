#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/listed_epoch.h"

namespace stoker::sidecar {

// Draws a fixed order, independent of what is stored. Serves the contract `exact` when the sidecar
// and not the trainer makes the order, and similar orders (chunk_order.h).
class ExactSampler final : public Sampler {
public:
    // The order of the whole dataset in one epoch: shape.count ids, each once.
    using Order = std::function<std::vector<SampleIndex>(std::uint64_t epoch)>;

    // The order of the Python client (exact_order.h).
    explicit ExactSampler(const EpochShape& shape);

    // Another order, dealt out to the ranks in the same way.
    ExactSampler(const EpochShape& shape, Order order);

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;
    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

private:
    EpochShape shape_;
    Order order_;
    std::map<std::uint32_t, ListedEpoch> ranks_;
};

}  // namespace stoker::sidecar
