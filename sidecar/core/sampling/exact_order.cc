#include "sidecar/core/sampling/exact_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "sidecar/core/sampling/torch_permutation.h"

namespace stoker::sidecar {

namespace {

// Initial state of the epoch's random words: mixes in the seed, then the epoch.
std::uint64_t stream_of(std::uint64_t seed, std::uint64_t epoch) {
    return Prng{Prng{seed}() + epoch}();
}

// Sorts by the ids' random words.
void sort_part(
    std::span<SampleIndex> part,
    const Prng& first_word,
    std::vector<std::pair<std::uint64_t, SampleIndex>>& keyed) {
    keyed.clear();
    for (const SampleIndex sample : part) {
        keyed.emplace_back(first_word.after(sample)(), sample);
    }
    std::ranges::sort(keyed);
    std::ranges::transform(keyed, part.begin(), [](const auto& key) { return key.second; });
}

}  // namespace

void shuffle(std::span<SampleIndex> samples, Prng& prng) {
    for (std::size_t left = samples.size(); left > 1; --left) {
        std::swap(samples[left - 1], samples[prng.below(left)]);
    }
}

// Distributes the ids by the upper bits of their words, then sorts each part; this needs the words
// of only one part at a time.
std::vector<SampleIndex> permutation(std::uint32_t count, std::uint64_t seed, std::uint64_t epoch) {
    const int part_bits = std::clamp(static_cast<int>(std::bit_width(count)) - 9, 1, 11);
    const auto part_of = [part_bits](std::uint64_t word) { return word >> (64 - part_bits); };
    const Prng first_word{stream_of(seed, epoch)};
    std::vector<std::uint32_t> ends((std::size_t{1} << part_bits) + 1);
    Prng words = first_word;
    for (SampleIndex sample = 0; sample < count; ++sample) {
        ++ends[part_of(words()) + 1];
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<SampleIndex> order(count);
    words = first_word;
    for (SampleIndex sample = 0; sample < count; ++sample) {
        order[ends[part_of(words())]++] = sample;
    }
    std::vector<std::pair<std::uint64_t, SampleIndex>> keyed;
    for (std::size_t part = 0; part + 1 < ends.size(); ++part) {
        // ends[part] is now the end of the part.
        sort_part(
            {order.begin() + (part == 0 ? 0 : ends[part - 1]), order.begin() + ends[part]},
            first_word,
            keyed);
    }
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
    if (shape.shuffle && shape.shuffler == Shuffler::kTorch) {
        ids = torch_permutation(shape.count, shape.seed + epoch);
    } else if (shape.shuffle) {
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
