#include "sidecar/core/sampling/exact_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// The state from which the epoch's words come: seed and epoch, mixed one after the other.
std::uint64_t stream_of(std::uint64_t seed, std::uint64_t epoch) {
    return Prng{Prng{seed}() + epoch}();
}

}  // namespace

void shuffle(std::span<SampleIndex> samples, Prng& prng) {
    for (std::size_t left = samples.size(); left > 1; --left) {
        std::swap(samples[left - 1], samples[prng.below(left)]);
    }
}

std::vector<SampleIndex> permutation(std::uint32_t count, std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::pair<std::uint64_t, SampleIndex>> keyed(count);
    Prng words{stream_of(seed, epoch)};
    for (SampleIndex sample = 0; sample < count; ++sample) {
        keyed[sample] = {words(), sample};
    }
    std::ranges::sort(keyed);
    std::vector<SampleIndex> order(count);
    std::ranges::transform(keyed, order.begin(), [](const auto& key) { return key.second; });
    return order;
}

std::uint32_t rank_length(const EpochShape& shape) {
    const std::uint32_t whole = shape.count / shape.ranks;
    return shape.tail == Tail::kDrop || shape.count % shape.ranks == 0 ? whole : whole + 1;
}

std::vector<SampleIndex> epoch_order(
    const EpochShape& shape, std::uint64_t epoch, std::uint32_t rank) {
    STOKER_CHECK(shape.count > 0 && rank < shape.ranks, "a rank of a world that reads something");
    std::vector<SampleIndex> ids;
    if (shape.shuffle) {
        ids = permutation(shape.count, shape.seed, epoch);
    } else {
        ids.resize(shape.count);
        std::iota(ids.begin(), ids.end(), SampleIndex{0});
    }
    return deal(shape, std::move(ids), rank);
}

std::vector<SampleIndex> deal(
    const EpochShape& shape, std::vector<SampleIndex> ids, std::uint32_t rank) {
    STOKER_CHECK(ids.size() == shape.count, "an order of the whole dataset is dealt out");
    if (shape.ranks == 1) {
        return ids;
    }
    std::vector<SampleIndex> order(rank_length(shape));
    for (std::size_t position = 0; position < order.size(); ++position) {
        order[position] = ids[(position * shape.ranks + rank) % shape.count];
    }
    return order;
}

}  // namespace stoker::sidecar
