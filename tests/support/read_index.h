#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/domain/range_place.h"
#include "common/domain/shard_index.h"

// Reads the samples of shards in memory, for tests.
namespace stoker::test {

struct IndexedShard {
    std::vector<domain::ListedObject> samples;
    std::uint64_t windows = 0;
    std::uint64_t bytes = 0;           // total of the windows that were read
    std::uint64_t longest_window = 0;  // bytes
};

// `text`: the object that the index reads, in windows of at most `longest` bytes (ShardIndex::next()).
inline Result<IndexedShard> read_index(
    domain::ShardIndex& index,
    const std::string& text,
    std::uint64_t longest = domain::ShardIndex::kLongestWindowBytes) {
    IndexedShard indexed;
    domain::Listing samples;
    while (const auto window = index.next(longest)) {
        EXPECT_GT(window->length, 0U);
        EXPECT_LE(window->offset + window->length, text.size());
        ++indexed.windows;
        indexed.bytes += window->length;
        indexed.longest_window = std::max(indexed.longest_window, window->length);
        const auto bytes = std::as_bytes(std::span{text}).subspan(window->offset, window->length);
        STOKER_TRY_VOID(index.take(bytes, samples));
    }
    indexed.samples = samples.objects();
    return indexed;
}

// The bytes of a sample in its shard.
inline std::string slice_of(const std::string& shard, const domain::ListedObject& sample) {
    const auto place = domain::parse_range_place(sample.key, sample.etag);
    return shard.substr(place.value().offset, sample.size_bytes);
}

}  // namespace stoker::test
