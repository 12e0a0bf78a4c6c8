#include "sidecar/simulate/trainer_shuffle.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "common/base/prng.h"

namespace stoker::simulate {

std::vector<SampleIndex> shuffled(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch) {
    std::vector<SampleIndex> order(samples);
    std::iota(order.begin(), order.end(), SampleIndex{0});
    Prng prng{Prng{seed}() + epoch};
    for (std::uint64_t i = samples; i > 1; --i) {
        std::swap(order[i - 1], order[prng.below(i)]);
    }
    return order;
}

void TrainerShuffle::begin_epoch(std::uint32_t /*rank*/, std::uint64_t epoch, std::uint64_t skip) {
    epoch_ = epoch;
    order_ = shuffled(samples_, seed_, epoch);
    position_ = std::min<std::size_t>(skip, order_.size());
}

void TrainerShuffle::draw(std::uint32_t /*rank*/, std::size_t count, std::vector<Draw>& draws) {
    const std::size_t end = std::min(order_.size(), position_ + count);
    for (; position_ < end; ++position_) {
        draws.push_back({order_[position_], order_[position_], Draw::Kind::kPlain});
    }
}

void TrainerShuffle::foresee(
    std::uint32_t /*rank*/, std::size_t count, std::vector<SampleIndex>& samples) const {
    const std::size_t end = std::min(order_.size(), position_ + count);
    for (std::size_t i = position_; i < end; ++i) {
        samples.push_back(order_[i]);
    }
}

EpochReport TrainerShuffle::report(std::uint32_t /*rank*/) const {
    EpochReport report;
    report.epoch = epoch_;
    report.requested = position_;
    report.distinct = position_;
    return report;
}

std::string TrainerShuffle::snapshot() const {
    return fmt::format("{} {}", epoch_, position_);
}

bool TrainerShuffle::restore(std::string_view snapshot) {
    const char* const end = snapshot.data() + snapshot.size();
    std::uint64_t epoch = 0;
    const auto [rest, error] = std::from_chars(snapshot.data(), end, epoch);
    if (error != std::errc{} || rest == end || *rest != ' ') {
        return false;
    }
    std::uint64_t position = 0;
    const auto [tail, second_error] = std::from_chars(rest + 1, end, position);
    if (second_error != std::errc{} || tail != end || position > samples_) {
        return false;
    }
    begin_epoch(0, epoch, position);
    return true;
}

}  // namespace stoker::simulate
