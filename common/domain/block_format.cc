#include "common/domain/block_format.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "common/domain/take_number.h"

namespace stoker::domain {

namespace {

constexpr std::string_view kPlacePrefix = "block:";
constexpr char kKeyMark = '\x01';  // the lowest byte that a key may have
constexpr std::size_t kNumberDigits = 8;
constexpr std::size_t kSuffixBytes = 1 + kNumberDigits;
constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 32U;

std::uint64_t blocks_of(std::uint64_t object_bytes, std::uint64_t block_bytes) {
    return (object_bytes - 1) / block_bytes + 1;
}

Status add_blocks(Listing& blocks, const Listing::Entry& object, std::uint64_t block_bytes) {
    const std::uint64_t count = blocks_of(object.size_bytes, block_bytes);
    if (count > kBlocksMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is too large for blocks of {} bytes", object.key, block_bytes));
    }
    BlockPlace place{0, block_bytes, object.size_bytes, object.etag};
    for (std::uint64_t number = 0; number < count; ++number) {
        place.number = static_cast<std::uint32_t>(number);
        STOKER_TRY_VOID(blocks.add(
            block_key(object.key, place.number), place.size_bytes(), encode_block_place(place)));
    }
    return {};
}

// Whether sample `id` is block `number` of the object to which the block `like` belongs.
bool is_block(
    const ManifestView& manifest,
    std::uint64_t id,
    const BlockPlace& like,
    std::string_view object_key,
    std::uint32_t number) {
    const SampleInfo sample = manifest.sample(SampleId{id});
    BlockPlace wanted = like;
    wanted.number = number;
    return sample.key == block_key(object_key, number) &&
           parse_block_place(sample.etag) == wanted && sample.size_bytes == wanted.size_bytes();
}

}  // namespace

std::uint64_t BlockPlace::size_bytes() const {
    return std::min(block_bytes, object_bytes - offset());
}

std::uint64_t BlockPlace::block_count() const {
    return blocks_of(object_bytes, block_bytes);
}

std::string encode_block_place(const BlockPlace& place) {
    return fmt::format(
        "{}{}:{}:{}:{}",
        kPlacePrefix,
        place.number,
        place.block_bytes,
        place.object_bytes,
        place.object_etag);
}

std::optional<BlockPlace> parse_block_place(std::string_view etag) {
    if (!etag.starts_with(kPlacePrefix)) {
        return std::nullopt;
    }
    etag.remove_prefix(kPlacePrefix.size());
    const auto number = take_number<std::uint32_t>(etag);
    const auto block_bytes = take_number<std::uint64_t>(etag);
    const auto object_bytes = take_number<std::uint64_t>(etag);
    if (!number || !block_bytes || !object_bytes || etag.empty() || *block_bytes == 0 ||
        *object_bytes == 0 || *number >= blocks_of(*object_bytes, *block_bytes)) {
        return std::nullopt;
    }
    return BlockPlace{*number, *block_bytes, *object_bytes, etag};
}

std::string block_key(std::string_view object_key, std::uint32_t number) {
    return fmt::format("{}{}{:08x}", object_key, kKeyMark, number);
}

std::string_view object_key_of(std::string_view block_key) {
    const bool is_long = block_key.size() >= kSuffixBytes;
    const std::size_t mark = is_long ? block_key.size() - kSuffixBytes : 0;
    return is_long && block_key[mark] == kKeyMark ? block_key.substr(0, mark) : block_key;
}

Result<Listing> list_blocks(const Listing& objects, Bytes block_bytes) {
    Listing blocks;
    for (std::size_t index = 0; index < objects.size(); ++index) {
        const Listing::Entry object = objects[index];
        if (object.key.find(kKeyMark) != std::string_view::npos) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}': a dataset of format Blocks cannot have the character U+0001 in a key",
                    object.key));
        }
        // A small object is one sample, without blocks, unless its ETag looks like a block's place:
        // then it becomes one block, because its own ETag would be taken for a place.
        const bool is_one = Bytes{object.size_bytes} <= block_bytes;
        if (is_one && (object.size_bytes == 0 || !parse_block_place(object.etag))) {
            STOKER_TRY_VOID(blocks.add(object.key, object.size_bytes, object.etag));
        } else {
            STOKER_TRY_VOID(add_blocks(blocks, object, block_bytes.count()));
        }
    }
    return blocks;
}

StoredObject object_of(const ManifestView& manifest, SampleId id) {
    const SampleInfo sample = manifest.sample(id);
    StoredObject object{id, 1, sample.size_bytes, sample.size_bytes, sample.key, sample.etag};
    const auto place = parse_block_place(sample.etag);
    if (!place || place->number > id.value()) {
        return object;
    }
    const std::string_view key = object_key_of(sample.key);
    const std::uint64_t first = id.value() - place->number;
    const std::uint64_t last = first + (place->block_count() - 1);
    const auto last_number = static_cast<std::uint32_t>(place->block_count() - 1);
    if (place->block_count() > kBlocksMax || last < first || last >= manifest.sample_count() ||
        !is_block(manifest, first, *place, key, 0) ||
        !is_block(manifest, id.value(), *place, key, place->number) ||
        !is_block(manifest, last, *place, key, last_number)) {
        return object;
    }
    object.first = SampleId{first};
    object.sample_count = place->block_count();
    object.size_bytes = place->object_bytes;
    object.block_bytes = place->block_bytes;
    object.key = key;
    object.etag = place->object_etag;
    return object;
}

}  // namespace stoker::domain
