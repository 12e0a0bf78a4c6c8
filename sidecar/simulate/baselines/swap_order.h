#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::simulate {

using domain::SampleIndex;
using sidecar::Draw;
using sidecar::EpochReport;

// A new uniform permutation of 0..samples-1 for every epoch, chosen by the trainer: Fisher-Yates,
// from seed and epoch alone.
std::vector<SampleIndex> shuffled(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch);

// A job's epoch as a shuffled list whose entries may swap places before they are read, so that each
// is read exactly once: the common part of Seneca's and Quiver's substitution. Baselines are not
// resumed. Not thread-safe.
class SwapOrder : public sidecar::Sampler {
public:
    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;

    void on_losses(std::uint32_t, std::span<const SampleIndex>, std::span<const float>) override {}

    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

protected:
    SwapOrder(std::uint64_t samples, std::uint64_t seed)
        : samples_(samples),
          seed_(seed),
          position_(samples) {}

    [[nodiscard]] bool is_at_end() const { return next_ == order_.size(); }

    [[nodiscard]] SampleIndex next() const { return order_[next_]; }

    // The next entries from next() on, at most `count`.
    [[nodiscard]] std::span<const SampleIndex> coming(std::size_t count) const {
        const auto rest = std::span{order_}.subspan(next_);
        return rest.first(count < rest.size() ? count : rest.size());
    }

    [[nodiscard]] bool is_unread(SampleIndex sample) const { return position_[sample] >= next_; }

    // Swaps `sample`, which must be unread, with next() and reads it.
    void read(SampleIndex sample, std::vector<Draw>& draws);

private:
    std::uint64_t samples_;
    std::uint64_t seed_;
    std::uint64_t epoch_ = 0;
    std::vector<SampleIndex> order_;
    std::vector<std::uint32_t> position_;  // by sample
    std::uint32_t next_ = 0;
};

}  // namespace stoker::simulate
