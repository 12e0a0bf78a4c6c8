#include "sidecar/origin/chunk_origin.h"

#include <utility>

#include "common/domain/chunk_format.h"
#include "sidecar/origin/packed_listing.h"
#include "sidecar/origin/range_origin.h"

namespace stoker::sidecar {

namespace {

class ChunkFormat final : public RangeFormat {
public:
    [[nodiscard]] std::string_view name() const override { return "chunks"; }

    Result<domain::Listing> list(
        Origin& origin,
        const domain::Listing& objects,
        const domain::ManifestView* /*known*/,  // not used: the index is one request
        const std::function<void(std::uint64_t)>& progress,
        const std::stop_token& stop) const override {
        return list_packed(origin, objects.objects(), progress, stop);
    }

    // A chunk begins with a header, so no sample has offset 0.
    [[nodiscard]] std::optional<SampleRange> find(const OriginFetch& sample) const override {
        const auto place = domain::parse_place(sample.etag);
        if (!place) {
            return std::nullopt;
        }
        return SampleRange{
            {domain::chunk_key(place->chunk), place->chunk_etag, place->chunk_bytes},
            place->offset,
            place->crc32c};
    }
};

}  // namespace

std::unique_ptr<Origin> make_chunk_origin(
    std::unique_ptr<Origin> chunks, ChunkReads::Limits limits) {
    return make_range_origin(std::move(chunks), std::make_unique<const ChunkFormat>(), limits);
}

}  // namespace stoker::sidecar
