#include "sidecar/core/sampling/exact_sampler.h"

#include <utility>

namespace stoker::sidecar {

ExactSampler::ExactSampler(const EpochShape& shape)
    : ExactSampler(shape, [shape](std::uint64_t epoch) {
          EpochShape whole = shape;
          whole.ranks = 1;
          return epoch_order(whole, epoch, 0);
      }) {}

ExactSampler::ExactSampler(const EpochShape& shape, Order order)
    : shape_(shape),
      order_(std::move(order)) {}

void ExactSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    ListedEpoch& state = ranks_[rank];
    state.order = std::vector<SampleIndex>{};  // frees memory for the next one
    state.order = deal(shape_, order_(epoch), rank);
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
    ranks_.at(rank).foresee(count, samples);
}

void ExactSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> /*samples*/, std::span<const float> losses) {
    ranks_[rank].report.losses_ignored += losses.size();
}

EpochReport ExactSampler::report(std::uint32_t rank) const {
    return ranks_.at(rank).report;
}

}  // namespace stoker::sidecar
