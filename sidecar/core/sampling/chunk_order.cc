#include "sidecar/core/sampling/chunk_order.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {

std::vector<SampleIndex> chunk_order(
    std::span<const std::uint32_t> chunk_of,
    std::uint32_t chunk_count,
    std::uint32_t group,
    std::uint64_t seed,
    std::uint64_t epoch) {
    Prng prng{Prng{seed}() + epoch};
    std::vector<std::uint32_t> chunks(chunk_count);
    std::iota(chunks.begin(), chunks.end(), 0U);
    shuffle(chunks, prng);

    std::vector<std::uint32_t> sizes(chunk_count);
    for (const std::uint32_t chunk : chunk_of) {
        STOKER_CHECK(chunk < chunk_count, "a sample lies in one of the chunks");
        ++sizes[chunk];
    }
    std::vector<std::uint32_t> next(chunk_count);  // next free position of each chunk
    std::vector<std::uint32_t> group_ends;
    std::uint32_t place = 0;
    for (std::uint32_t i = 0; i < chunk_count; ++i) {
        next[chunks[i]] = place;
        place += sizes[chunks[i]];
        if ((i + 1) % std::max(group, 1U) == 0 || i + 1 == chunk_count) {
            group_ends.push_back(place);
        }
    }
    std::vector<SampleIndex> order(chunk_of.size());
    for (SampleIndex sample = 0; sample < chunk_of.size(); ++sample) {
        order[next[chunk_of[sample]]++] = sample;
    }
    std::uint32_t begin = 0;
    for (const std::uint32_t end : group_ends) {
        shuffle(std::span{order}.subspan(begin, end - begin), prng);
        begin = end;
    }
    return order;
}

}  // namespace stoker::sidecar
