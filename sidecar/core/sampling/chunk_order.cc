#include "sidecar/core/sampling/chunk_order.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// All samples, chunk after chunk, and where each chunk ends.
struct Chain {
    std::vector<SampleIndex> samples;
    std::vector<std::uint32_t> ends;
};

Chain chain_chunks(
    std::span<const std::uint32_t> chunk_of, const std::vector<std::uint32_t>& chunks) {
    std::vector<std::uint32_t> sizes(chunks.size());
    for (const std::uint32_t chunk : chunk_of) {
        STOKER_CHECK(chunk < chunks.size(), "the sample's chunk number is too large");
        ++sizes[chunk];
    }
    Chain chain{std::vector<SampleIndex>(chunk_of.size()), {}};
    std::vector<std::uint32_t> next(chunks.size());  // next free position of each chunk
    std::uint32_t place = 0;
    for (const std::uint32_t chunk : chunks) {
        next[chunk] = place;
        place += sizes[chunk];
        chain.ends.push_back(place);
    }
    for (SampleIndex sample = 0; sample < chunk_of.size(); ++sample) {
        chain.samples[next[chunk_of[sample]]++] = sample;
    }
    return chain;
}

}  // namespace

GroupedOrder chunk_order(
    std::span<const std::uint32_t> chunk_of,
    std::uint32_t chunk_count,
    std::uint32_t group,
    const EpochShape& shape,
    std::uint64_t epoch,
    std::uint32_t rank) {
    Prng prng{Prng{shape.seed}() + epoch};
    std::vector<std::uint32_t> chunks(chunk_count);
    std::iota(chunks.begin(), chunks.end(), 0U);
    shuffle(chunks, prng);
    Chain chain = chain_chunks(chunk_of, chunks);

    const std::uint32_t each = shape.count / shape.ranks;
    const std::uint32_t longer = shape.tail == Tail::kPad ? shape.count % shape.ranks : 0;
    const std::uint32_t begin = rank * each + std::min(rank, longer);
    const std::uint32_t end = begin + each + (rank < longer ? 1 : 0);
    if (shape.ranks > 1) {
        prng = Prng{prng() + rank};
    }
    GroupedOrder order;
    auto chunk = std::ranges::upper_bound(chain.ends, begin);
    for (std::uint32_t from = begin; from < end;) {
        const auto left = static_cast<std::uint32_t>(chain.ends.end() - chunk);
        chunk += std::min(std::max(group, 1U), left);
        const std::uint32_t to = std::min(*(chunk - 1), end);
        shuffle(std::span{chain.samples}.subspan(from, to - from), prng);
        order.ends.push_back(to - begin);
        from = to;
    }
    order.samples.assign(chain.samples.begin() + begin, chain.samples.begin() + end);
    if (order.samples.size() < rank_length(shape)) {
        order.samples.push_back(chain.samples[end % shape.count]);
    }
    return order;
}

}  // namespace stoker::sidecar
