#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// Draws a fixed order: what is stored changes nothing. Serves the contract `exact` where the
// sidecar and not the trainer makes the order, and orders of the same kind (chunk_order.h).
class ExactSampler final : public Sampler {
public:
    // The order of the whole dataset in one epoch: shape.count ids, each once.
    using Order = std::function<std::vector<SampleIndex>(std::uint64_t epoch)>;

    // The order of the Python client (exact_order.h).
    ExactSampler(const EpochShape& shape, const World& world);

    // Another order, dealt out to the ranks in the same way.
    ExactSampler(const EpochShape& shape, const World& world, Order order);

    void on_stored(SampleIndex /*sample*/) override {}

    void on_gone(SampleIndex /*sample*/) override {}

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;
    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

    [[nodiscard]] std::span<const float> relative_importance() const override { return {}; }

    // Nothing: seed, epoch and position, which the trainer has, are the whole state.
    [[nodiscard]] std::string snapshot() const override { return {}; }

    bool restore(std::string_view snapshot) override { return snapshot.empty(); }

private:
    struct Rank {
        std::uint32_t rank = 0;
        std::vector<SampleIndex> order;
        std::size_t position = 0;
        EpochReport report;
    };

    [[nodiscard]] std::size_t find(std::uint32_t rank) const;

    EpochShape shape_;
    Order order_;
    std::vector<Rank> ranks_;
};

}  // namespace stoker::sidecar
