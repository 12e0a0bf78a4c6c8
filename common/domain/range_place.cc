#include "common/domain/range_place.h"

#include <fmt/format.h>

#include "common/domain/take_number.h"

namespace stoker::domain {

namespace {

constexpr std::string_view kPrefix = "range:";
constexpr std::string_view kChecksumPrefix = "crc32c:";
constexpr int kHex = 16;

}  // namespace

std::string encode_range_place(const RangePlace& place) {
    const std::string checksum =
        place.crc32c ? fmt::format("{}{:08x}:", kChecksumPrefix, *place.crc32c) : "";
    return fmt::format(
        "{}{}{}:{}:{}:{}",
        checksum,
        kPrefix,
        place.offset,
        place.object_bytes,
        place.key_bytes,
        place.object_etag);
}

std::optional<RangePlace> parse_range_place(std::string_view key, std::string_view etag) {
    std::optional<std::uint32_t> checksum;
    if (etag.starts_with(kChecksumPrefix)) {
        etag.remove_prefix(kChecksumPrefix.size());
        checksum = take_number<std::uint32_t>(etag, kHex);
        if (!checksum) {
            return std::nullopt;
        }
    }
    if (!etag.starts_with(kPrefix)) {
        return std::nullopt;
    }
    etag.remove_prefix(kPrefix.size());
    const auto offset = take_number<std::uint64_t>(etag);
    const auto object_bytes = take_number<std::uint64_t>(etag);
    const auto key_bytes = take_number<std::uint16_t>(etag);
    if (!offset || !object_bytes || !key_bytes || etag.empty() || *offset >= *object_bytes ||
        *key_bytes == 0 || std::size_t{*key_bytes} + 1 >= key.size() || key[*key_bytes] != '/') {
        return std::nullopt;
    }
    return RangePlace{*offset, *object_bytes, *key_bytes, etag, checksum};
}

}  // namespace stoker::domain
