#include "common/domain/listing.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace stoker::domain {

Result<Listing> Listing::of(const std::vector<ListedObject>& objects) {
    Listing listing;
    for (const ListedObject& object : objects) {
        STOKER_TRY_VOID(listing.add(object.key, object.size_bytes, object.etag));
    }
    return listing;
}

Status Listing::add(std::string_view key, std::uint64_t size_bytes, std::string_view etag) {
    constexpr std::size_t kTextMax = std::numeric_limits<std::uint16_t>::max();
    if (key.size() > kTextMax || etag.size() > kTextMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "'{}...': its key or ETag has more than {} bytes", key.substr(0, 100), kTextMax));
    }
    const std::uint64_t bytes = key.size() + etag.size();
    if (used_ % kBlockBytes + bytes > kBlockBytes || blocks_.empty()) {
        used_ = blocks_.size() * std::uint64_t{kBlockBytes};
    }
    if (used_ + bytes > std::numeric_limits<std::uint32_t>::max()) {
        return fail(ErrorCode::kInvalidArgument, "the keys of the dataset exceed 4 GiB");
    }
    if (used_ == blocks_.size() * std::uint64_t{kBlockBytes}) {
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlockBytes));
    }
    char* text = blocks_.back().get() + used_ % kBlockBytes;
    std::ranges::copy(key, text);
    std::ranges::copy(etag, text + key.size());
    rows_.push_back(
        {size_bytes,
         static_cast<std::uint32_t>(used_),
         static_cast<std::uint16_t>(key.size()),
         static_cast<std::uint16_t>(etag.size())});
    used_ += bytes;
    return {};
}

void Listing::sort() {
    const auto key_of = [this](const Row& row) { return entry_of(row).key; };
    if (!std::ranges::is_sorted(rows_, {}, key_of)) {
        std::ranges::sort(rows_, {}, key_of);
    }
}

std::vector<ListedObject> Listing::objects() const {
    std::vector<ListedObject> objects;
    objects.reserve(size());
    for (const Row& row : rows_) {
        objects.push_back(entry_of(row).copy());
    }
    return objects;
}

}  // namespace stoker::domain
