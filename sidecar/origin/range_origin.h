#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/manifest.h"
#include "sidecar/origin/chunk_reads.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// A sample of at least this size gets a request of its own.
constexpr std::uint64_t kReadAloneBytes = 4U << 20U;

// Where a sample lies.
struct SampleRange {
    ChunkObject object;
    std::uint64_t offset = 0;               // not above object.bytes
    std::optional<std::uint32_t> crc32c{};  // of the sample's bytes, where the format has it
};

// A format whose samples are ranges of objects. Immutable: any thread may call.
class RangeFormat {
public:
    virtual ~RangeFormat() = default;

    // Name of the objects in messages: "chunks".
    [[nodiscard]] virtual std::string_view name() const = 0;

    // The samples in the objects of a listing; may read `origin`. Blocking; arguments and errors as those
    // of Origin::list_again(). `known` may be nullptr.
    virtual Result<domain::Listing> list(
        Origin& origin,
        const domain::Listing& objects,
        const domain::ManifestView* known,
        const std::function<void(std::uint64_t)>& progress,
        const std::stop_token& stop) const = 0;

    // The range that the key and ETag of the manifest name. nullopt: not a sample of this format.
    // Also the object of an empty sample has at least one byte.
    [[nodiscard]] virtual std::optional<SampleRange> find(const OriginFetch& sample) const = 0;
};

// Makes an origin of a format's samples from the origin of its objects. A sample's ETag is its
// place, so fetches work with a manifest of an earlier process. A replaced object has another ETag:
// kConflict. SampleRange::crc32c becomes OriginBytes::stored_crc32c.
//
// Samples of one object that are asked together, or while others of it wait for a request, share a
// request where the gaps between them cost less than another one (chunk_reads.h). Its failure is that of
// its samples alone, and counts once (OriginAnswer::failed_requests); kResourceExhausted: each is read
// alone. A sample of kReadAloneBytes or more, a slice of a sample, and one whose bytes were damaged
// have requests of their own.
// `limits`: of the shared requests. Besides the payloads handed out, memory holds the requests in flight,
// at most twice the bytes asked for.
std::unique_ptr<Origin> make_range_origin(
    std::unique_ptr<Origin> objects,
    std::unique_ptr<const RangeFormat> format,
    ChunkReads::Limits limits);

}  // namespace stoker::sidecar
