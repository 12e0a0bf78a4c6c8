#include "sidecar/core/eviction/never_evict.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// A fixed permutation of 0..2^bits-1 that is unlike the order of the ids. The shifts with exclusive
// or and the products with odd numbers are invertible, so no two positions give one number.
std::uint64_t scattered(std::uint64_t position, unsigned bits) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const unsigned half = bits / 2 + 1;
    std::uint64_t word = position;
    for (const std::uint64_t odd : {0x9E3779B97F4A7C15ULL, 0xBF58476D1CE4E5B9ULL}) {
        word = ((word ^ (word >> half)) * odd) & mask;
    }
    return word ^ (word >> half);
}

}  // namespace

void NeverEvict::on_resident(SampleIndex sample, Bytes bytes) {
    if (sample >= bytes_.size()) {
        bytes_.resize(std::size_t{sample} + 1);
    }
    STOKER_CHECK(bytes_[sample] == 0 && bytes > Bytes::zero(), "the sample is resident already");
    bytes_[sample] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(bytes.count(), std::numeric_limits<std::uint32_t>::max()));
}

void NeverEvict::on_gone(SampleIndex sample) {
    STOKER_CHECK(sample < bytes_.size(), "the sample is not resident");
    bytes_[sample] = 0;
}

void NeverEvict::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    const auto bits = static_cast<unsigned>(std::bit_width(bytes_.size()));
    const std::uint64_t positions = std::uint64_t{1} << bits;
    Bytes freed;
    for (std::uint64_t looks = 0; looks < positions && freed < excess; ++looks, ++position_) {
        const std::uint64_t sample = scattered(position_ % positions, bits);
        if (sample < bytes_.size() && bytes_[sample] > 0) {
            victims.push_back(static_cast<SampleIndex>(sample));
            freed += Bytes{bytes_[sample]};
        }
    }
}

}  // namespace stoker::sidecar
