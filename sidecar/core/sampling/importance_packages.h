#pragma once

#include <cstdint>
#include <optional>

#include "sidecar/core/sampling/epoch_permutation.h"

namespace stoker::sidecar {

// Walks a dataset package by package: runs of neighbouring samples, in a random order of the runs
// (iCACHE's dynamic packaging, where the origin stores each run together). Constant memory. Not
// thread-safe.
class PackageCursor {
public:
    // `package`: samples per run. `seed` and `epoch` determine the order of the runs.
    PackageCursor(
        std::uint32_t count, std::uint32_t package, std::uint64_t seed, std::uint64_t epoch)
        : count_(count),
          package_size_(package),
          // Inverts the seed, so that this order differs from the order in which samples are drawn.
          order_(count / package + (count % package != 0 ? 1 : 0), ~seed, epoch) {}

    // The next sample that `wanted` accepts, examining at most `looks` samples; nullopt: none was
    // accepted, or the whole dataset has been walked.
    template <class Wanted>
    std::optional<SampleIndex> next(const Wanted& wanted, std::uint32_t looks) {
        for (; looks > 0 && package_ < order_.count(); --looks) {
            if (offset_ == 0) {
                first_ = std::uint64_t{order_.at(package_)} * package_size_;
            }
            const std::uint64_t sample = first_ + offset_;
            if (++offset_ == package_size_) {
                offset_ = 0;
                ++package_;
            }
            if (sample < count_ && wanted(static_cast<SampleIndex>(sample))) {
                return static_cast<SampleIndex>(sample);
            }
        }
        return std::nullopt;
    }

private:
    std::uint32_t count_;
    std::uint32_t package_size_;
    EpochPermutation order_;
    std::uint32_t package_ = 0;
    std::uint32_t offset_ = 0;
    std::uint64_t first_ = 0;  // id of the package's first sample
};

}  // namespace stoker::sidecar
