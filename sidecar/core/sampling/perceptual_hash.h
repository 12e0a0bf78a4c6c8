#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stoker::sidecar {

// 64 bits that near-duplicates nearly share: the fewer bits differ, the more alike. Any
// locality-sensitive hash will do; these are the ones that need no model. Pure functions.
using Fingerprint = std::uint64_t;

// Decoded pixels, row by row, one byte each.
struct GrayImage {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::span<const std::uint8_t> pixels;
};

// Which of 8x8 cells are brighter than the mean of all. Nothing: no pixels, or not width x height.
std::optional<Fingerprint> average_hash(const GrayImage& image);

// Which of 9x8 cells are darker than their right neighbour: does not change with brightness and
// contrast. Nothing: as above.
std::optional<Fingerprint> difference_hash(const GrayImage& image);

// Hash of the bytes as they are: equal for equal bytes, otherwise unrelated (compare with distance
// 0). Not for secrets: duplicates can be forged.
Fingerprint content_hash(std::span<const std::byte> bytes);

// In how many bits they differ.
std::uint32_t distance(Fingerprint a, Fingerprint b);

}  // namespace stoker::sidecar
