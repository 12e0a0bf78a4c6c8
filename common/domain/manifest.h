#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/ids.h"

// The manifest of one dataset revision: id -> key, size, ETag, label
// (docs/design/manifest-format.md). A leader creates the file once; every sidecar and client of the
// node maps it read-only. Pure: buffers in, values out.
//
//   header (128) · records (40 each, by id) · label table (8 each) · string pool · crc32c (4)
namespace stoker::domain {

inline constexpr std::uint64_t kManifestMagic = 0x3146494E414D4B53ULL;  // "SKMANIF1"
inline constexpr std::uint32_t kManifestFormatVersion = 1;
inline constexpr std::size_t kManifestHeaderBytes = 128;
inline constexpr std::size_t kManifestRecordBytes = 40;
inline constexpr std::size_t kLabelEntryBytes = 8;
inline constexpr std::size_t kManifestChecksumBytes = 4;
inline constexpr std::int32_t kNoLabel = -1;

// One row of a manifest. The views point into the manifest's bytes and are valid as long as those.
struct SampleInfo {
    SampleId id{};
    std::string_view key;
    std::string_view etag;
    std::uint64_t size_bytes = 0;
    std::int32_t label =
        kNoLabel;  // index into labels(): the parent folder, numbered as in ImageFolder
};

// A validated view of manifest bytes; does not own them, and they must outlive it. Thread-safe:
// immutable.
class ManifestView {
public:
    // Checks lengths, version and (with `verify_checksum`) the checksum of the whole file;
    // afterwards no call can read outside `bytes`. kCorruption: damaged. kInvalidArgument: another
    // version.
    static Result<ManifestView> open(std::span<const std::byte> bytes, bool verify_checksum = true);

    [[nodiscard]] RevisionId revision() const { return revision_; }

    [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }

    [[nodiscard]] Bytes total_bytes() const { return total_bytes_; }

    [[nodiscard]] std::uint64_t largest_sample_bytes() const { return largest_sample_bytes_; }

    [[nodiscard]] std::uint32_t label_count() const { return label_count_; }

    // The sample's row. `id` must be below sample_count(). O(1), no allocation.
    [[nodiscard]] SampleInfo sample(SampleId id) const;

    [[nodiscard]] std::uint64_t size_bytes(SampleId id) const;

    // The folder's name. `label` must be below label_count().
    [[nodiscard]] std::string_view label_name(std::uint32_t label) const;

private:
    ManifestView() = default;

    [[nodiscard]] std::string_view pool_text(std::uint64_t offset, std::size_t length) const;

    std::span<const std::byte> records_;
    std::span<const std::byte> labels_;
    std::span<const std::byte> pool_;
    RevisionId revision_{};
    std::uint64_t sample_count_ = 0;
    std::uint64_t largest_sample_bytes_ = 0;
    Bytes total_bytes_{};
    std::uint32_t label_count_ = 0;
};

}  // namespace stoker::domain
