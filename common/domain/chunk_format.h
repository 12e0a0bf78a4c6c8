#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/strong.h"
#include "common/domain/listing.h"

// Chunks: objects that `stoker pack` fills with many small samples (docs/howto/pack.md describes
// the bytes, ADR 0015 the reasons). Each chunk begins with a header that describes all its samples;
// an object "index" beside the chunks repeats the headers and can be rebuilt from them. Pure:
// buffers in, values out; every number read from a buffer is checked.
//
//   chunk: fixed part (64) · samples (24 each) · names · crc32c (4) · payloads
//   index: fixed part (32) · headers of chunks 0..n-1 · crc32c (4)
namespace stoker::domain {

inline constexpr std::uint32_t kChunkFormatVersion = 1;
inline constexpr std::size_t kChunkFixedBytes = 64;
inline constexpr std::size_t kChunkSampleBytes = 24;
inline constexpr std::uint32_t kChunkHeaderBytesMax = 64U << 20U;
inline constexpr std::size_t kSampleNameBytesMax = 65535;
inline constexpr std::string_view kChunkIndexKey = "index";

// Identifies one run of `stoker pack`: a digest of the packed listing and of the settings.
using PackId = Strong<std::uint64_t, struct PackIdTag>;

enum class PackOrder : std::uint8_t { kListed, kRandom };

// The fields that are equal in all chunks of a pack.
struct PackIdentity {
    PackId id{};
    PackOrder order = PackOrder::kRandom;
    std::uint64_t seed = 0;  // seed of the random order; 0 for kListed
    std::uint32_t chunk_count = 0;

    bool operator==(const PackIdentity&) const = default;
};

struct ChunkSample {
    std::string name;  // the sample's key; its label follows from the key, as for objects
    std::uint64_t size_bytes = 0;
    std::uint32_t crc32c = 0;  // of the payload

    bool operator==(const ChunkSample&) const = default;
};

// One chunk's header as values. The payloads follow the header in the order of `samples`, without
// gaps between them.
struct ChunkHeader {
    PackIdentity pack;
    std::uint32_t number = 0;  // 0..chunk_count-1
    std::vector<ChunkSample> samples;

    bool operator==(const ChunkHeader&) const = default;

    // Length of the encoded header: offset of the first payload.
    [[nodiscard]] std::uint64_t header_bytes() const;

    // Length of the whole chunk.
    [[nodiscard]] std::uint64_t object_bytes() const;
};

// "chunk-00000007"
std::string chunk_key(std::uint32_t number);

// The number in a chunk's key; nullopt: not the key of a chunk.
std::optional<std::uint32_t> parse_chunk_key(std::string_view key);

// Encodes a header. kInvalidArgument: no samples, a name that is empty, longer than
// kSampleNameBytesMax or contains a NUL, or a header longer than kChunkHeaderBytesMax.
Result<std::vector<std::byte>> encode_chunk_header(const ChunkHeader& header);

// Length in bytes of the header whose first kChunkFixedBytes bytes these are. kCorruption,
// kInvalidArgument: as for parse_chunk_header().
Result<std::uint32_t> chunk_header_length(std::span<const std::byte> fixed_part);

// Parses the header at the beginning of `bytes`; ignores the bytes after it. kCorruption: damaged
// or not a chunk. kInvalidArgument: another format version.
Result<ChunkHeader> parse_chunk_header(std::span<const std::byte> bytes);

// Encodes an index. Requires: check_pack(headers) succeeds.
std::vector<std::byte> encode_chunk_index(const std::vector<ChunkHeader>& headers);

// Parses an index. Errors: as for parse_chunk_header().
Result<std::vector<ChunkHeader>> parse_chunk_index(std::span<const std::byte> bytes);

// Whether the bytes begin with an index's magic number; does not look at the rest.
bool begins_as_index(std::span<const std::byte> bytes);

// Compares the headers of an index with the first kChunkFixedBytes bytes of chunk 0. kConflict: the
// chunk belongs to another pack. Otherwise the errors of parse_chunk_header(). Requires:
// check_pack(headers) succeeds.
Status check_first_chunk(
    const std::vector<ChunkHeader>& headers, std::span<const std::byte> fixed_part);

// Checks headers. kInvalidArgument: they are not all chunks of one pack, in order of number.
Status check_pack(const std::vector<ChunkHeader>& headers);

// Where a packed sample lies. encode_place() writes this as the sample's ETag in the manifest, so
// that a fetch needs no index: "chunk:7:4160:1a2b3c4d:4194304:ETag of the chunk".
struct ChunkPlace {
    std::uint32_t chunk = 0;
    std::uint64_t offset = 0;  // offset of the payload in the chunk
    std::uint32_t crc32c = 0;  // of the payload
    std::uint64_t chunk_bytes = 0;
    std::string chunk_etag;

    bool operator==(const ChunkPlace&) const = default;
};

std::string encode_place(const ChunkPlace& place);

// Parses an ETag as a place; nullopt: it is none.
std::optional<ChunkPlace> parse_place(std::string_view etag);

// Lists the samples of all chunks: names, sizes, and places as ETags. `objects` is the listing of
// the chunks. kConflict: a chunk is missing from it or has another length there (the message names
// it), or there are more chunks than headers.
Result<Listing> list_samples(
    std::vector<ChunkHeader> headers, const std::vector<ListedObject>& objects);

}  // namespace stoker::domain
