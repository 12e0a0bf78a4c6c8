#pragma once

#include <array>
#include <cstdint>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// A shuffled 0..count-1 that needs no memory: a Feistel network over the next power of two,
// iterated until the value is in range (Black and Rogaway, CT-RSA 2002). Both directions, at() and
// position_of(), take O(1), so an epoch can resume anywhere, and ten million samples need no setup.
// The same on every machine. Immutable, so safe to share between threads.
class EpochPermutation {
public:
    EpochPermutation(std::uint32_t count, std::uint64_t seed, std::uint64_t epoch);

    // The sample at `position`, which must be below count().
    [[nodiscard]] SampleIndex at(std::uint32_t position) const;

    // The position of `sample`, which must be below count().
    [[nodiscard]] std::uint32_t position_of(SampleIndex sample) const;

    [[nodiscard]] std::uint32_t count() const { return count_; }

private:
    static constexpr std::size_t kRounds = 4;  // each round covers two halves

    struct Halves {
        std::uint32_t left = 0;
        std::uint32_t right = 0;
    };

    [[nodiscard]] Halves split(std::uint32_t word) const;
    [[nodiscard]] std::uint32_t forward(std::uint32_t word) const;
    [[nodiscard]] std::uint32_t backward(std::uint32_t word) const;

    std::uint32_t count_;
    std::uint32_t rotation_ = 0;  // small domains have few networks; rotating gives more orders
    std::uint32_t right_bits_ = 0;
    std::uint32_t left_mask_ = 0;
    std::uint32_t right_mask_ = 0;
    std::array<std::uint64_t, 2 * kRounds> keys_{};
};

}  // namespace stoker::sidecar
