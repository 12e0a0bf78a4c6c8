#include "common/domain/shard_index.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "common/domain/range_place.h"

namespace stoker::domain {

namespace {

constexpr std::uint64_t kListingRowBytes = 16;  // of a Listing's row, besides key and ETag

// A sample's place. The key's length fits 16 bits: Listing::add() refuses longer keys.
RangePlace place_of(const ListedObject& shard, const ShardSample& sample) {
    RangePlace place;
    place.offset = std::min(sample.offset, shard.size_bytes - 1);
    place.object_bytes = shard.size_bytes;
    place.key_bytes = static_cast<std::uint16_t>(shard.key.size());
    place.object_etag = shard.etag;
    place.crc32c = sample.crc32c;
    return place;
}

// Least bytes of the key and ETag of a sample that is named by its number.
std::uint64_t least_text_bytes(const ListedObject& shard) {
    return shard.key.size() + 1 + number_name(0).size() +
           encode_range_place(place_of(shard, {})).size();
}

}  // namespace

Status add_sample(const ListedObject& shard, const ShardSample& sample, Listing& samples) {
    if (shard.key.size() > std::numeric_limits<std::uint16_t>::max()) {
        return fail(ErrorCode::kInvalidArgument, "the key of a shard has 64 KiB or more");
    }
    return samples.add(
        fmt::format("{}/{}", shard.key, sample.name),
        sample.size_bytes,
        encode_range_place(place_of(shard, sample)));
}

std::string number_name(std::uint64_t number) {
    return fmt::format("{:09}", number);
}

std::uint64_t listed_bytes(const ListedObject& shard, std::uint64_t count) {
    return count * (kListingRowBytes + least_text_bytes(shard));
}

Status check_sample_count(const ListedObject& shard, std::uint64_t count) {
    if (count > std::numeric_limits<std::uint32_t>::max() / least_text_bytes(shard)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "'{}' has {} samples, too many for a dataset, whose keys may have 4 GiB",
                shard.key,
                count));
    }
    return {};
}

bool ShardIndex::reads_over(const ByteRange& header) const {
    return header.offset <= kReadOverBytes * (sample_count_ + 1);
}

std::optional<ByteRange> ShardIndex::next(std::uint64_t longest) const {
    const auto header = wanted();
    if (!header || header->length == 0) {
        return header;
    }
    const std::uint64_t longest_allowed = std::max(longest, kLongWindowBytes);
    const std::uint64_t length =
        reads_over(*header) ? std::min(long_window_bytes_, longest_allowed) : kShortWindowBytes;
    const std::uint64_t left = object_.size_bytes - std::min(header->offset, object_.size_bytes);
    return ByteRange{header->offset, std::max(header->length, std::min(length, left))};
}

Status ShardIndex::take(std::span<const std::byte> window, Listing& samples) {
    const std::size_t before = samples.size();
    const auto first = wanted();
    const Status taken = take_all(window, samples);
    sample_count_ += samples.size() - before;
    const auto following = wanted();
    const bool is_read_through =
        first && following && following->offset > first->offset &&
        following->offset <= first->offset + window.size() + kReadOverBytes;
    long_window_bytes_ =
        is_read_through ? std::min(2 * long_window_bytes_, kLongestWindowBytes) : kLongWindowBytes;
    return taken ? taken : fail(taken.error().prefixed(fmt::format("'{}'", object_.key)));
}

Status ShardIndex::take_all(std::span<const std::byte> window, Listing& samples) {
    std::uint64_t begin = 0;  // offset of the window in the object
    if (const auto first = wanted()) {
        begin = first->offset;
    }
    while (const auto header = wanted()) {
        const std::uint64_t at = header->offset - begin;
        if (header->offset < begin || at > window.size() || header->length > window.size() - at) {
            return {};
        }
        STOKER_TRY_VOID(step(window.subspan(at, header->length), samples));
    }
    return end(samples);
}

}  // namespace stoker::domain
