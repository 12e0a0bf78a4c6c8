#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "common/domain/listing.h"
#include "common/domain/manifest.h"

// Blocks: a Dataset of format Blocks caches large objects in aligned ranges of one size. Each range
// is a sample of the manifest (docs/design/manifest-format.md: keys and ETags; ADR 0019: reasons).
// An object that is not larger than a block is one sample. Pure.
namespace stoker::domain {

inline constexpr Bytes kBlockBytesDefault = mib(8);
inline constexpr Bytes kBlockBytesMin = kib(4);
inline constexpr Bytes kBlockBytesMax = mib(32);  // a fetch holds a block in memory

// Where a block lies. encode_block_place() writes this as the block's ETag in the manifest, so that
// a fetch needs nothing else: "block:3:8388608:1073741824:ETag of the object". A block has the
// object's bytes [number * block_bytes, (number + 1) * block_bytes); the last one may be shorter.
struct BlockPlace {
    std::uint32_t number = 0;
    std::uint64_t block_bytes = 0;   // size of each block, except the last one
    std::uint64_t object_bytes = 0;  // at least 1
    std::string_view object_etag;

    bool operator==(const BlockPlace&) const = default;

    [[nodiscard]] std::uint64_t offset() const { return number * block_bytes; }

    [[nodiscard]] std::uint64_t size_bytes() const;

    // Number of blocks of the object.
    [[nodiscard]] std::uint64_t block_count() const;
};

std::string encode_block_place(const BlockPlace& place);

// Parses an ETag as a place; nullopt: it is none. The result points into `etag`.
std::optional<BlockPlace> parse_block_place(std::string_view etag);

// The key of a block: the object's key, the byte 1, and the number as eight hex digits. So an
// object's blocks follow one another, in the object's place in the order of keys.
std::string block_key(std::string_view object_key, std::uint32_t number);

// The key of the object that the block with this key belongs to.
std::string_view object_key_of(std::string_view block_key);

// Lists the blocks of all objects. kInvalidArgument: a key contains the byte 1, or an object has
// more than 2^32 blocks.
Result<Listing> list_blocks(const Listing& objects, Bytes block_bytes);

// One object of the origin as a manifest has it: one sample, or the blocks from `first` on. The views
// point into the manifest's bytes.
struct StoredObject {
    SampleId first{};
    std::uint64_t sample_count = 1;
    std::uint64_t size_bytes = 0;
    std::uint64_t block_bytes = 0;  // of all samples but the last; for a single sample: size_bytes
    std::string_view key;
    std::string_view etag;

    bool operator==(const StoredObject&) const = default;
};

// The object that sample `id` is a part of; `id` must be below sample_count(). A sample that claims
// to be a block, but whose neighbours are not the other blocks of its object, counts as an object.
StoredObject object_of(const ManifestView& manifest, SampleId id);

}  // namespace stoker::domain
