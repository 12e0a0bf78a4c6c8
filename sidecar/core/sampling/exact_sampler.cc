#include "sidecar/core/sampling/exact_sampler.h"

#include <algorithm>
#include <utility>

namespace stoker::sidecar {

ExactSampler::ExactSampler(const EpochShape& shape)
    : ExactSampler(shape, [shape](std::uint64_t epoch, std::uint32_t rank) {
          return GroupedOrder{epoch_order(shape, epoch, rank), {}};
      }) {}

ExactSampler::ExactSampler(const EpochShape& shape, Order order, std::size_t group_samples)
    : shape_(shape),
      order_(std::move(order)),
      group_samples_(group_samples) {}

void ExactSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    ListedEpoch& state = ranks_[rank];
    state.order = std::vector<SampleIndex>{};  // frees memory for the next order
    GroupedOrder order = order_(epoch, rank);
    state.order = std::move(order.samples);
    group_ends_[rank] = std::move(order.ends);
    state.rewind(epoch);
    if (rank == 0 && shape_.tail == Tail::kDrop) {
        state.report.skipped = shape_.count % shape_.ranks;
    }
    skip_draws(rank, skip);
}

void ExactSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    const auto repeats = [this, rank](SampleIndex /*sample*/, std::size_t position) {
        return is_padding(shape_, rank, position);
    };
    ranks_.at(rank).draw(count, repeats, draws);
}

void ExactSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const ListedEpoch& state = ranks_.at(rank);
    const auto& ends = group_ends_.at(rank);
    const auto end = std::ranges::lower_bound(ends, state.position + count);
    const bool is_close = end != ends.end() && *end - state.position < 2 * count;
    state.foresee(is_close ? *end - state.position : count, samples);
}

void ExactSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> /*samples*/, std::span<const float> losses) {
    ranks_[rank].report.losses_ignored += losses.size();
}

EpochReport ExactSampler::report(std::uint32_t rank) const {
    return ranks_.at(rank).report;
}

}  // namespace stoker::sidecar
