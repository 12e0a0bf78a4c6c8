#include "sidecar/service/known_reads.h"

#include <algorithm>
#include <limits>

#include "sidecar/core/sampling/clairvoyant_accesses.h"
#include "sidecar/core/sampling/torch_permutation.h"

namespace stoker::sidecar {

namespace {

EpochShape shape_of(const control::KnownReads& reads, std::uint64_t samples) {
    return {
        .count = static_cast<std::uint32_t>(samples),
        .seed = reads.seed,
        .ranks = static_cast<std::uint32_t>(reads.rank_members.size()),
        .tail = reads.drop_last ? Tail::kDrop : Tail::kPad,
        .shuffler =
            reads.order == control::ReadOrder::kStoker ? Shuffler::kStoker : Shuffler::kTorch};
}

}  // namespace

bool can_place(const control::KnownReads& reads, std::uint64_t samples, std::size_t members) {
    const std::uint64_t samples_max = reads.order == control::ReadOrder::kTorchDistributed
                                          ? kTorchPermutationMax
                                          : std::numeric_limits<std::uint32_t>::max();
    return !reads.rank_members.empty() && reads.rank_members.size() <= samples &&
           samples <= samples_max && members <= std::numeric_limits<std::uint16_t>::max();
}

std::vector<std::uint16_t> owners_of(
    const control::KnownReads& reads, std::uint64_t samples, std::size_t members) {
    return owners_by_reads(
        shape_of(reads, samples),
        reads.epochs,
        reads.rank_members,
        static_cast<std::uint16_t>(members));
}

bool is_foretold(
    const control::KnownReads& reads,
    std::uint64_t samples,
    std::uint32_t rank,
    std::uint32_t ranks,
    const StreamPlan& plan) {
    EpochShape shape = shape_of(reads, samples);
    if (ranks != shape.ranks || rank >= ranks) {
        return false;
    }
    if (plan.epoch() >= reads.epochs || plan.length() == 0) {
        return true;
    }
    shape.ranks = 1;
    const auto order = epoch_order(shape, plan.epoch(), 0);
    const auto first =
        static_cast<std::uint64_t>(std::ranges::find(order, plan.sample_at(0)) - order.begin());
    const std::uint64_t dealt_from = (first + samples - rank) % samples;
    shape.ranks = ranks;
    shape.count = static_cast<std::uint32_t>(samples - dealt_from);
    bool is_same = plan.length() == rank_length(shape);
    for (std::uint64_t i = 0; is_same && i < plan.length(); ++i) {
        is_same =
            plan.sample_at(static_cast<std::uint32_t>(i)) == order[(first + i * ranks) % samples];
    }
    return is_same;
}

bool begin_anew(
    const std::optional<control::KnownReads>& before,
    const std::optional<control::KnownReads>& after) {
    return after && after != before;
}

}  // namespace stoker::sidecar
