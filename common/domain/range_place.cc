#include "common/domain/range_place.h"

#include <fmt/format.h>

#include "common/domain/take_number.h"

namespace stoker::domain {

namespace {

constexpr std::string_view kPrefix = "range:";

}  // namespace

std::string encode_range_place(const RangePlace& place) {
    return fmt::format(
        "{}{}:{}:{}:{}",
        kPrefix,
        place.offset,
        place.object_bytes,
        place.key_bytes,
        place.object_etag);
}

std::optional<RangePlace> parse_range_place(std::string_view key, std::string_view etag) {
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
    return RangePlace{*offset, *object_bytes, *key_bytes, etag};
}

}  // namespace stoker::domain
