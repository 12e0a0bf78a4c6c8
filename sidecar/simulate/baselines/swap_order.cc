#include "sidecar/simulate/baselines/swap_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sidecar/core/sampling/exact_order.h"

namespace stoker::simulate {

std::vector<SampleIndex> shuffled(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch) {
    std::vector<SampleIndex> order(samples);
    std::iota(order.begin(), order.end(), SampleIndex{0});
    Prng prng{Prng{seed}() + epoch};
    sidecar::shuffle(order, prng);
    return order;
}

void SwapOrder::begin_epoch(std::uint32_t /*rank*/, std::uint64_t epoch, std::uint64_t skip) {
    epoch_ = epoch;
    order_ = shuffled(samples_, seed_, epoch);
    next_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(skip, order_.size()));
    for (std::uint32_t position = 0; position < order_.size(); ++position) {
        position_[order_[position]] = position;
    }
}

void SwapOrder::foresee(
    std::uint32_t /*rank*/, std::size_t count, std::vector<SampleIndex>& samples) const {
    const auto ahead = coming(count);
    samples.insert(samples.end(), ahead.begin(), ahead.end());
}

EpochReport SwapOrder::report(std::uint32_t /*rank*/) const {
    EpochReport report;
    report.epoch = epoch_;
    report.requested = next_;
    report.distinct = next_;
    return report;
}

void SwapOrder::read(SampleIndex sample, std::vector<Draw>& draws) {
    const SampleIndex displaced = order_[next_];
    std::swap(order_[next_], order_[position_[sample]]);
    std::swap(position_[sample], position_[displaced]);
    ++next_;
    draws.push_back({sample, sample, Draw::Kind::kPlain});
}

}  // namespace stoker::simulate
