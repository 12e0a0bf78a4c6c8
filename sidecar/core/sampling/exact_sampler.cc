#include "sidecar/core/sampling/exact_sampler.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

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
    Rank& state = ranks_[find(rank)];
    state.order = std::vector<SampleIndex>{};  // its memory is for the next one
    state.order = deal(shape_, order_(epoch), rank);
    state.position = 0;
    state.report = EpochReport{.epoch = epoch};
    if (rank == 0 && shape_.tail == Tail::kDrop) {
        state.report.skipped = shape_.count % shape_.ranks;
    }
    std::vector<Draw> forgotten;
    draw(rank, std::min<std::uint64_t>(skip, state.order.size()), forgotten);
}

void ExactSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Rank& state = ranks_[find(rank)];
    const std::size_t end = std::min(state.position + count, state.order.size());
    for (; state.position < end; ++state.position) {
        const SampleIndex sample = state.order[state.position];
        const bool repeated = is_padding(shape_, rank, state.position);
        draws.push_back({sample, sample, repeated ? Draw::Kind::kRepeated : Draw::Kind::kPlain});
        ++state.report.requested;
        ++(repeated ? state.report.repeated : state.report.distinct);
    }
}

void ExactSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const Rank& state = ranks_[find(rank)];
    const std::size_t end = std::min(state.position + count, state.order.size());
    samples.insert(
        samples.end(),
        state.order.begin() + static_cast<std::ptrdiff_t>(state.position),
        state.order.begin() + static_cast<std::ptrdiff_t>(end));
}

void ExactSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> /*samples*/, std::span<const float> losses) {
    ranks_[find(rank)].report.losses_ignored += losses.size();
}

EpochReport ExactSampler::report(std::uint32_t rank) const {
    return ranks_[find(rank)].report;
}

std::size_t ExactSampler::find(std::uint32_t rank) const {
    const auto found = std::ranges::find(ranks_, rank, &Rank::rank);
    STOKER_CHECK(found != ranks_.end(), "only local ranks draw");
    return static_cast<std::size_t>(found - ranks_.begin());
}

}  // namespace stoker::sidecar
