#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The bench's samples: random content, log-normal sizes (sigma 0.5), by default 4,000 with a mean of
// 110 KiB. They depend on the seed and the workload alone, so every program makes the same samples.
namespace stoker::bench {

inline constexpr std::uint64_t kSeed = 20261121;
inline constexpr std::size_t kSampleCount = 4000;
inline constexpr double kMeanBytes = 110 * 1024;
inline constexpr double kSigma = 0.5;
inline constexpr std::size_t kBatch = 64;

struct Workload {
    std::size_t count = kSampleCount;
    double mean_bytes = kMeanBytes;
};

// Size of each sample in bytes.
std::vector<std::uint64_t> sample_sizes(const Workload& workload = {});

// "0003/00001234.bin": a thousand objects per folder, in the order of their ids.
std::string sample_key(std::size_t index);

void fill_sample(std::size_t index, std::span<std::byte> out);

// Key at the origin, which holds copies of every sample so that a cold pass lasts longer:
// "c2/0003/00001234.bin".
std::string origin_key(std::size_t index);

// A permutation of 0..count-1, different for each pass.
std::vector<std::uint64_t> pass_order(std::uint64_t pass, std::size_t count = kSampleCount);

// Reads every byte; the returned sum keeps the compiler from dropping the reads.
std::uint64_t touch(std::span<const std::byte> bytes);

// Monotonic seconds.
double seconds();

}  // namespace stoker::bench
