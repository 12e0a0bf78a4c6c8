#include "sidecar/attached/find_object.h"

#include <algorithm>
#include <ranges>

namespace stoker::attached {

namespace {

// Binary search: the first id, at least `low`, for whose key `before` is false. `before` must be
// true for the first keys and false for all others.
template <class Before>
std::uint64_t first_not(
    const domain::ManifestView& manifest, std::uint64_t low, const Before& before) {
    const auto ids = std::views::iota(low, std::max(low, manifest.sample_count()));
    return low + static_cast<std::uint64_t>(std::ranges::distance(
                     ids.begin(), std::ranges::partition_point(ids, [&](std::uint64_t id) {
                         return before(manifest.sample(domain::SampleId{id}).key);
                     })));
}

}  // namespace

std::uint64_t lower_bound(const domain::ManifestView& manifest, std::string_view key) {
    return first_not(manifest, 0, [key](std::string_view other) { return other < key; });
}

std::uint64_t after_prefix(
    const domain::ManifestView& manifest, std::uint64_t low, std::string_view prefix) {
    return first_not(manifest, low, [prefix](std::string_view key) {
        return key.substr(0, prefix.size()) <= prefix;
    });
}

std::uint64_t id_after(const domain::StoredObject& object) {
    return object.first.value() + object.sample_count;
}

// The keys of an object's blocks sort directly after the object's own key, so lower_bound() gives
// the first block.
std::optional<domain::StoredObject> find_object(
    const domain::ManifestView& manifest, std::string_view key) {
    const std::uint64_t id = lower_bound(manifest, key);
    if (id == manifest.sample_count()) {
        return std::nullopt;
    }
    const domain::StoredObject object = domain::object_of(manifest, domain::SampleId{id});
    return object.key == key ? std::optional{object} : std::nullopt;
}

}  // namespace stoker::attached
