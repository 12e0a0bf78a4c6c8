#include "sidecar/core/sampling/epoch_permutation.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"
#include "common/base/prng.h"

namespace stoker::sidecar {

namespace {

std::uint32_t scramble(std::uint32_t word, std::uint64_t key) {
    std::uint64_t mixed = (word ^ key) * 0xFF51AFD7ED558CCDULL;
    mixed ^= mixed >> 32U;
    mixed *= 0xC4CEB9FE1A85EC53ULL;
    return static_cast<std::uint32_t>(mixed >> 32U);
}

}  // namespace

EpochPermutation::EpochPermutation(std::uint32_t count, std::uint64_t seed, std::uint64_t epoch)
    : count_(count) {
    STOKER_CHECK(count > 0, "an epoch has samples");
    // At least two bits, so that both halves exist.
    const auto bits = std::max<std::uint32_t>(2, std::bit_width(count - 1));
    right_bits_ = (bits + 1) / 2;
    right_mask_ = (1U << right_bits_) - 1;
    left_mask_ = (1U << (bits - right_bits_)) - 1;
    Prng mixed_seed(seed);
    Prng luck(mixed_seed() ^ (epoch * 0xD1342543DE82EF95ULL));
    std::generate(keys_.begin(), keys_.end(), [&luck] { return luck(); });
    rotation_ = static_cast<std::uint32_t>(luck.below(count));
}

EpochPermutation::Halves EpochPermutation::split(std::uint32_t word) const {
    return {word >> right_bits_, word & right_mask_};
}

std::uint32_t EpochPermutation::forward(std::uint32_t word) const {
    Halves halves = split(word);
    for (std::size_t round = 0; round < keys_.size(); round += 2) {
        halves.left ^= scramble(halves.right, keys_[round]) & left_mask_;
        halves.right ^= scramble(halves.left, keys_[round + 1]) & right_mask_;
    }
    return (halves.left << right_bits_) | halves.right;
}

std::uint32_t EpochPermutation::backward(std::uint32_t word) const {
    Halves halves = split(word);
    for (std::size_t round = keys_.size(); round > 0; round -= 2) {
        halves.right ^= scramble(halves.left, keys_[round - 1]) & right_mask_;
        halves.left ^= scramble(halves.right, keys_[round - 2]) & left_mask_;
    }
    return (halves.left << right_bits_) | halves.right;
}

SampleIndex EpochPermutation::at(std::uint32_t position) const {
    std::uint32_t word = forward(position);
    while (word >= count_) {
        word = forward(word);
    }
    const std::uint64_t turned = std::uint64_t{word} + rotation_;
    return static_cast<SampleIndex>(turned < count_ ? turned : turned - count_);
}

std::uint32_t EpochPermutation::position_of(SampleIndex sample) const {
    std::uint32_t word = sample >= rotation_ ? sample - rotation_ : sample + (count_ - rotation_);
    do {
        word = backward(word);
    } while (word >= count_);
    return word;
}

}  // namespace stoker::sidecar
