#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::simulate {

using domain::SampleIndex;
using sidecar::Draw;
using sidecar::EpochReport;

// A new uniform permutation of 0..samples-1 for every epoch: Fisher and Yates, from seed and epoch
// alone.
std::vector<SampleIndex> shuffled(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch);

// The contract `exact`: the trainer's own sampler, which the sidecar never sees and which here
// reads every sample once an epoch in a new uniform order. One rank. Not thread-safe.
class TrainerShuffle final : public sidecar::Sampler {
public:
    TrainerShuffle(std::uint64_t samples, std::uint64_t seed)
        : samples_(samples),
          seed_(seed) {}

    void on_stored(SampleIndex /*sample*/) override {}

    void on_gone(SampleIndex /*sample*/) override {}

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;

    void on_losses(std::uint32_t, std::span<const SampleIndex>, std::span<const float>) override {}

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

    [[nodiscard]] std::span<const float> relative_importance() const override { return {}; }

    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

private:
    std::uint64_t samples_;
    std::uint64_t seed_;
    std::uint64_t epoch_ = 0;
    std::vector<SampleIndex> order_;
    std::size_t position_ = 0;
};

}  // namespace stoker::simulate
