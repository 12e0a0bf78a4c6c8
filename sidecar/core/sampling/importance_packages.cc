#include "sidecar/core/sampling/importance_packages.h"

namespace stoker::sidecar {

namespace {

std::uint32_t package_count(std::uint32_t count, std::uint32_t package) {
    return count / package + (count % package != 0 ? 1 : 0);
}

}  // namespace

PackageCursor::PackageCursor(std::uint32_t count, std::uint32_t package)
    : count_(count),
      package_size_(package),
      order_(package_count(count, package), 0, 0) {}

void PackageCursor::begin(std::uint64_t seed, std::uint64_t epoch) {
    // Another order than that of samples under the same seed.
    order_ = EpochPermutation(order_.count(), ~seed, epoch);
    package_ = 0;
    offset_ = 0;
}

}  // namespace stoker::sidecar
