#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The samples that every row of the bench reads: 4,000, sizes log-normal with a mean of 110 KiB
// (sigma 0.5), random content. A function of the seed alone, so that every program makes the same
// ones.
namespace stoker::bench {

inline constexpr std::uint64_t kSeed = 20261121;
inline constexpr std::size_t kSampleCount = 4000;
inline constexpr double kMeanBytes = 110 * 1024;
inline constexpr double kSigma = 0.5;
inline constexpr std::size_t kBatch = 64;

std::vector<std::uint64_t> sample_sizes();

// "0003/00001234.bin": a thousand objects a folder, in the order of their ids.
std::string sample_key(std::size_t index);

void fill_sample(std::size_t index, std::span<std::byte> out);

// Key at the origin, where every sample stands several times so that a cold pass lasts:
// "c2/0003/00001234.bin".
std::string origin_key(std::size_t index);

// A permutation of 0..count-1, another one for each pass.
std::vector<std::uint64_t> pass_order(std::uint64_t pass, std::size_t count = kSampleCount);

// Reads every byte; the sum keeps the compiler from leaving reads out.
std::uint64_t touch(std::span<const std::byte> bytes);

// Monotonic seconds.
double seconds();

}  // namespace stoker::bench
