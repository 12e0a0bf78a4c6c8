#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/domain/block_format.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"

namespace stoker::test {

// A manifest and its bytes.
struct Manifest {
    std::vector<std::byte> bytes;
    domain::ManifestView view;
};

// A manifest of these keys; each object is as long as its key.
inline Manifest manifest_of(const std::set<std::string>& keys) {
    std::vector<domain::ListedObject> objects;
    for (const std::string& key : keys) {
        objects.push_back({key, key.size(), "etag"});
    }
    auto bytes = domain::encode_manifest(objects).value();
    const auto view = domain::ManifestView::open(bytes).value();
    return {std::move(bytes), view};
}

// A manifest in format Blocks of objects with these sizes.
inline Manifest blocks_of(
    const std::map<std::string, std::uint64_t>& sizes, std::uint64_t block_bytes) {
    domain::Listing objects;
    for (const auto& [key, size] : sizes) {
        const Status added = objects.add(key, size, "etag");
        STOKER_CHECK(added.has_value(), "a test lists good objects");
    }
    const auto blocks = domain::list_blocks(objects, Bytes{block_bytes}).value();
    auto bytes = domain::encode_manifest(blocks.objects()).value();
    const auto view = domain::ManifestView::open(bytes).value();
    return {std::move(bytes), view};
}

}  // namespace stoker::test
