#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/result.h"
#include "common/domain/manifest.h"

// Values derived from a manifest's keys, sizes and ETags, and checks of them
// (docs/design/manifest-format.md). Pure.
namespace stoker::domain {

// Digest that becomes the revision (FNV-1a, 64 bits); the file's checksum protects against damage.
class ManifestDigest {
public:
    void add(std::string_view text) {
        for (const char c : text) {
            step(static_cast<std::uint8_t>(c));
        }
        step(0);
    }

    void add(std::uint64_t number) {
        for (unsigned shift = 0; shift < 64; shift += 8) {
            step(static_cast<std::uint8_t>(number >> shift));
        }
    }

    [[nodiscard]] std::uint64_t value() const { return hash_; }

private:
    void step(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3ULL; }

    std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

// Whether the key, used as a path, stays below the root: no part of it is empty, "." or "..".
bool is_plain_key(std::string_view key);

// The name of the folder that holds the sample, which is its label; empty at the root. For a sample
// in a tar shard, the folders are those of its name in the shard (range_place.h).
std::string_view label_folder(std::string_view key, std::string_view etag);

// Checks a manifest that another process has sent: whether encode_manifest() could have made it
// from a listing. kCorruption: keys out of order, wrong labels or totals, or a revision that is not
// the digest of the samples; also a key with an empty, "." or ".." part. A bucket may have such
// keys: the caller then lists the origin itself. O(samples); one bit of memory per label.
Status check_manifest(const ManifestView& manifest);

}  // namespace stoker::domain
