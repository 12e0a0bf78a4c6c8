#include "sidecar/core/sampling/perceptual_hash.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace stoker::sidecar {

namespace {

bool is_whole(const GrayImage& image) {
    return image.width > 0 && image.height > 0 &&
           image.pixels.size() == std::size_t{image.width} * image.height;
}

// First pixel of a cell, and the one after its last; never empty, so that small images work too.
struct Range {
    Range(std::uint32_t cell, std::uint32_t cells, std::uint32_t pixels)
        : first(static_cast<std::uint32_t>(std::uint64_t{cell} * pixels / cells)),
          last(std::max(
              first + 1, static_cast<std::uint32_t>((std::uint64_t{cell} + 1) * pixels / cells))) {}

    std::uint32_t first;
    std::uint32_t last;
};

double mean_of(const GrayImage& image, const Range& columns, const Range& rows) {
    std::uint64_t sum = 0;
    for (std::uint32_t y = rows.first; y < rows.last; ++y) {
        for (std::uint32_t x = columns.first; x < columns.last; ++x) {
            sum += image.pixels[std::size_t{y} * image.width + x];
        }
    }
    const double pixels = static_cast<double>(columns.last - columns.first) *
                          static_cast<double>(rows.last - rows.first);
    return static_cast<double>(sum) / pixels;
}

std::vector<double> cells_of(const GrayImage& image, std::uint32_t columns, std::uint32_t rows) {
    std::vector<double> cells;
    for (std::uint32_t y = 0; y < rows; ++y) {
        for (std::uint32_t x = 0; x < columns; ++x) {
            cells.push_back(mean_of(image, {x, columns, image.width}, {y, rows, image.height}));
        }
    }
    return cells;
}

}  // namespace

std::optional<Fingerprint> average_hash(const GrayImage& image) {
    if (!is_whole(image)) {
        return std::nullopt;
    }
    const auto cells = cells_of(image, 8, 8);
    double sum = 0;
    for (const double cell : cells) {
        sum += cell;
    }
    Fingerprint hash = 0;
    for (const double cell : cells) {
        hash = (hash << 1U) | (cell * 64 > sum ? 1U : 0U);
    }
    return hash;
}

std::optional<Fingerprint> difference_hash(const GrayImage& image) {
    if (!is_whole(image)) {
        return std::nullopt;
    }
    const auto cells = cells_of(image, 9, 8);
    Fingerprint hash = 0;
    for (std::size_t row = 0; row < 8; ++row) {
        for (std::size_t column = 0; column < 8; ++column) {
            const bool rises = cells[row * 9 + column] < cells[row * 9 + column + 1];
            hash = (hash << 1U) | (rises ? 1U : 0U);
        }
    }
    return hash;
}

// FNV-1a, then the end of SplitMix64, so that every bit of the bytes moves half of the result.
Fingerprint content_hash(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const std::byte byte : bytes) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3ULL;
    }
    hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
    return hash ^ (hash >> 31U);
}

std::uint32_t distance(Fingerprint a, Fingerprint b) {
    return static_cast<std::uint32_t>(std::popcount(a ^ b));
}

}  // namespace stoker::sidecar
