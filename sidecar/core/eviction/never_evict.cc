#include "sidecar/core/eviction/never_evict.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/prng.h"

namespace stoker::sidecar {

void NeverEvict::on_resident(SampleIndex sample, Bytes bytes) {
    if (sample >= bytes_.size()) {
        bytes_.resize(std::size_t{sample} + 1);
    }
    STOKER_CHECK(bytes_[sample] == 0 && bytes > Bytes::zero(), "becomes resident only once");
    bytes_[sample] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(bytes.count(), std::numeric_limits<std::uint32_t>::max()));
}

void NeverEvict::on_gone(SampleIndex sample) {
    STOKER_CHECK(sample < bytes_.size(), "only a resident can go");
    bytes_[sample] = 0;
}

void NeverEvict::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    std::vector<std::pair<std::uint64_t, SampleIndex>> lots;
    for (SampleIndex sample = 0; sample < bytes_.size(); ++sample) {
        if (bytes_[sample] > 0) {
            lots.emplace_back(Prng{sample}(), sample);
        }
    }
    std::ranges::sort(lots);
    for (Bytes freed; freed < excess && !lots.empty(); lots.pop_back()) {
        victims.push_back(lots.back().second);
        freed += Bytes{bytes_[victims.back()]};
    }
}

}  // namespace stoker::sidecar
