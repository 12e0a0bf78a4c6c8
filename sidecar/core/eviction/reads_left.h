#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// How often the ranks of one job on this node will still read each sample in their current epoch.
// The sampler updates the counts; the eviction policy reads them. 1 byte per sample: a count above
// 255 stays 255. Not thread-safe.
class ReadsLeft {
public:
    explicit ReadsLeft(std::uint32_t count)
        : left_(count) {}

    // Sets all counts to zero.
    void clear() { std::ranges::fill(left_, std::uint8_t{0}); }

    // Adds one read for each entry of `samples`; duplicates count each time.
    void add(std::span<const SampleIndex> samples) {
        for (const SampleIndex sample : samples) {
            if (left_[sample] < kMost) {
                ++left_[sample];
            }
        }
    }

    void on_read(SampleIndex sample) {
        if (left_[sample] > 0) {
            --left_[sample];
        }
    }

    [[nodiscard]] std::uint32_t of(SampleIndex sample) const { return left_[sample]; }

private:
    static constexpr std::uint8_t kMost = std::numeric_limits<std::uint8_t>::max();

    std::vector<std::uint8_t> left_;
};

}  // namespace stoker::sidecar
