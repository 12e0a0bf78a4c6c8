#include "sidecar/simulate/baselines/quiver.h"

#include <algorithm>

namespace stoker::simulate {

void QuiverSampler::draw(std::uint32_t /*rank*/, std::size_t count, std::vector<Draw>& draws) {
    const auto ahead = coming(count * over_request_);
    wanted_.assign(ahead.begin(), ahead.end());
    // Residents first, then the other samples, both in the epoch's order.
    std::ranges::stable_partition(
        wanted_, [this](SampleIndex sample) { return node_.is_stored(sample); });
    wanted_.resize(std::min(count, wanted_.size()));
    for (const SampleIndex sample : wanted_) {
        read(sample, draws);
    }
}

}  // namespace stoker::simulate
