#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/domain/block_format.h"
#include "common/domain/manifest.h"

// Searches in a manifest, whose keys are sorted. Pure; O(log samples).
namespace stoker::attached {

// The id of the first sample whose key is not below `key`; sample_count() if there is none.
std::uint64_t lower_bound(const domain::ManifestView& manifest, std::string_view key);

// The first id, at least `low`, whose key is above `prefix` and does not begin with it.
std::uint64_t after_prefix(
    const domain::ManifestView& manifest, std::uint64_t low, std::string_view prefix);

// The id after the object's last sample.
std::uint64_t id_after(const domain::StoredObject& object);

// Finds the object with this key.
std::optional<domain::StoredObject> find_object(
    const domain::ManifestView& manifest, std::string_view key);

}  // namespace stoker::attached
