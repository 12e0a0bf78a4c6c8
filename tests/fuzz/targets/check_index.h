#pragma once

#include <string>
#include <vector>

#include "common/domain/range_place.h"
#include "common/domain/shard_index.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

// Reads the samples of a shard, `shard_bytes` long, by its index in `object`, and checks windows and places.
// Returns those that were found before an error.
inline std::vector<domain::ListedObject> check_index(
    domain::ShardIndex& index, const std::string& object, std::uint64_t shard_bytes) {
    constexpr std::uint64_t kWindowMax = 9U << 20U;
    const auto bytes = std::as_bytes(std::span{object});
    domain::Listing samples;
    while (const auto window = index.next()) {
        expect(window->offset <= object.size(), "a window begins in the object");
        expect(window->length <= object.size() - window->offset, "a window ends in the object");
        expect(window->length <= kWindowMax, "a window is small");
        if (!index.take(bytes.subspan(window->offset, window->length), samples)) {
            break;
        }
    }
    for (const domain::ListedObject& sample : samples.objects()) {
        const auto place = domain::parse_range_place(sample.key, sample.etag);
        expect(place.has_value(), "a sample has a place");
        expect(sample.size_bytes <= shard_bytes - place->offset, "a sample ends in the shard");
    }
    return samples.objects();
}

}  // namespace stoker::fuzz
