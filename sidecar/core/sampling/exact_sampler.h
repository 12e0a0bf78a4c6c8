#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sidecar/core/sampling/chunk_order.h"
#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/listed_epoch.h"

namespace stoker::sidecar {

// Draws a fixed order, independent of what is stored. Serves the contract `exact` when the sidecar
// and not the trainer makes the order, and similar orders (chunk_order.h).
class ExactSampler final : public Sampler {
public:
    // The order of a rank's epoch: rank_length(shape) ids. Together the ranks read each id once,
    // not counting padding (is_padding()).
    using Order = std::function<GroupedOrder(std::uint64_t epoch, std::uint32_t rank)>;

    // Draws in the same order as the Python client (exact_order.h).
    explicit ExactSampler(const EpochShape& shape);

    ExactSampler(const EpochShape& shape, Order order, std::size_t group_samples = 0);

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    // Foresees `count` samples; up to the end of the group, if that is less than twice as many.
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;
    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;

    [[nodiscard]] std::size_t group_samples() const override { return group_samples_; }

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

private:
    EpochShape shape_;
    Order order_;
    std::size_t group_samples_;
    std::map<std::uint32_t, ListedEpoch> ranks_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> group_ends_;  // GroupedOrder's, by rank
};

}  // namespace stoker::sidecar
