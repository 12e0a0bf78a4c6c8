#include "sidecar/core/sampling/exact_sampler.h"

#include <utility>

namespace stoker::sidecar {

ExactSampler::ExactSampler(const EpochShape& shape, const World& world)
    : ExactSampler(shape, world, [shape](std::uint64_t epoch) {
          EpochShape whole = shape;
          whole.ranks = 1;
          return epoch_order(whole, epoch, 0);
      }) {}

ExactSampler::ExactSampler(const EpochShape& shape, const World& world, Order order)
    : shape_(shape),
      order_(std::move(order)) {
    for (const std::uint32_t rank : world.local_ranks) {
        ranks_.emplace_back().rank = rank;
    }
}

void ExactSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    ListedEpoch& state = local_rank(ranks_, rank);
    state.order = std::vector<SampleIndex>{};  // its memory is for the next one
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
    local_rank(ranks_, rank).draw(count, repeats, draws);
}

void ExactSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    local_rank(ranks_, rank).foresee(count, samples);
}

void ExactSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> /*samples*/, std::span<const float> losses) {
    local_rank(ranks_, rank).report.losses_ignored += losses.size();
}

EpochReport ExactSampler::report(std::uint32_t rank) const {
    return local_rank(ranks_, rank).report;
}

}  // namespace stoker::sidecar
