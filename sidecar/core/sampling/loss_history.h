#pragma once

#include <cstdint>
#include <vector>

namespace stoker::sidecar {

// The losses of the last R samples that a walk has passed; the next sample is rated by them
// (iCACHE's loss history, R = 1024). Constant memory, 8 bytes per loss; O(log R) to rate, one short
// memmove to add. Not thread-safe.
class LossHistory {
public:
    explicit LossHistory(std::uint32_t capacity);

    void clear();

    // Forgets the oldest loss when full. `loss` must be finite.
    void add(float loss);

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(sorted_.size()); }

    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }

    // Adds `loss` and returns its percentile: the share of the losses before it that are below it,
    // 0..1, where `luck` (uniform in [0,1)) breaks ties. For a loss of the same distribution as the
    // history this is exactly uniform, including ties, so keeping samples with probability
    // percentile^beta keeps 1/(1+beta) of all. The top loss reaches 1; the published routine gave
    // the hardest 1% a zero, so they were never read.
    double rate_and_add(float loss, double luck);

private:
    void add_at(std::size_t less, float loss);
    void replace_oldest(std::size_t less, float loss);

    std::uint32_t capacity_;
    std::uint32_t oldest_ = 0;     // index in arrivals_, once the history is full
    std::vector<float> arrivals_;  // in order of arrival, circular
    std::vector<float> sorted_;
};

}  // namespace stoker::sidecar
