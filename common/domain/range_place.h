#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::domain {

// Where a sample lies that is a range of a larger object (the formats of shard_format.h).
// encode_range_place() writes this as the sample's ETag in the manifest, so that a fetch needs
// nothing else: "range:4096:1073741824:12:ETag of the object", preceded by "crc32c:1a2b3c4d:" if
// the object has a checksum of the sample. The sample's key is the object's key, '/', and a name
// (docs/design/manifest-format.md). Pure.
struct RangePlace {
    std::uint64_t offset = 0;               // of the sample's first byte in the object
    std::uint64_t object_bytes = 0;         // above `offset`
    std::uint16_t key_bytes = 0;            // length of the object's key, at least 1
    std::string_view object_etag;           // not empty
    std::optional<std::uint32_t> crc32c{};  // checksum of the sample's bytes

    bool operator==(const RangePlace&) const = default;

    [[nodiscard]] std::string_view object_key(std::string_view sample_key) const {
        return sample_key.substr(0, key_bytes);
    }

    // The sample's name in its object.
    [[nodiscard]] std::string_view name(std::string_view sample_key) const {
        return sample_key.substr(key_bytes + std::size_t{1});
    }
};

std::string encode_range_place(const RangePlace& place);

// Parses the place of the sample with this key. nullopt: `etag` is not a place, or the key does not
// fit to it. The result points into `etag`.
std::optional<RangePlace> parse_range_place(std::string_view key, std::string_view etag);

}  // namespace stoker::domain
