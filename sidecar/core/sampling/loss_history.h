#pragma once

#include <cstdint>
#include <vector>

namespace stoker::sidecar {

// The losses of the samples that a walk came past last, to rate the next one by (iCACHE's loss
// history, R = 1024). Constant memory, 8 bytes a loss; O(log R) to rate, one short memmove to add.
// Not thread-safe.
class LossHistory {
public:
    explicit LossHistory(std::uint32_t capacity);

    void clear();

    // Forgets the oldest loss when full. `loss` must be finite.
    void add(float loss);

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(sorted_.size()); }

    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }

    // The share of losses below `loss`, 0..1, where `luck` (uniform in [0,1)) decides among equals.
    // For a loss of the history's own kind this is exactly uniform, ties and all, so that whoever
    // keeps a sample with probability percentile^beta keeps 1/(1+beta) of all. It reaches 1 at the
    // top: the published routine gave the hardest 1% a zero, which never let them be read.
    [[nodiscard]] double percentile(float loss, double luck) const;

    // The two in one, for less: the percentile among what was there before `loss`.
    double rate_and_add(float loss, double luck);

private:
    [[nodiscard]] double percentile_at(std::size_t less, float loss, double luck) const;
    void add_at(std::size_t less, float loss);
    void replace_oldest(std::size_t less, float loss);

    std::uint32_t capacity_;
    std::uint32_t oldest_ = 0;     // index in arrivals_, once that is full
    std::vector<float> arrivals_;  // in order of arrival, round and round
    std::vector<float> sorted_;
};

}  // namespace stoker::sidecar
