#include "sidecar/origin/chunk_origin.h"

#include <utility>

#include <fmt/core.h>

#include "common/domain/chunk_format.h"
#include "sidecar/origin/packed_listing.h"

namespace stoker::sidecar {

namespace {

class ChunkOrigin final : public Origin {
public:
    explicit ChunkOrigin(std::unique_ptr<Origin> chunks)
        : chunks_(std::move(chunks)) {}

    [[nodiscard]] std::string describe() const override {
        return chunks_->describe() + " (chunks)";
    }

    [[nodiscard]] bool has_key() const override { return chunks_->has_key(); }

    Result<std::vector<domain::ListedObject>> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        STOKER_TRY(const auto objects, chunks_->list(progress, stop));
        STOKER_TRY(auto samples, list_packed(*chunks_, objects, progress, stop));
        if (progress) {
            progress(samples.size());
        }
        return samples;
    }

    void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) override;

private:
    const std::unique_ptr<Origin> chunks_;
};

// The request for the bytes of one sample. An empty sample has no bytes to ask for: it asks for the
// byte before it, which every chunk has, so that its chunk is checked, too.
OriginFetch in_chunk(const domain::ChunkPlace& place, std::uint64_t size_bytes) {
    OriginFetch wanted{domain::chunk_key(place.chunk), place.chunk_etag, size_bytes};
    wanted.slice = OriginSlice{place.offset, place.chunk_bytes};
    if (size_bytes == 0) {
        wanted.size_bytes = 1;
        --wanted.slice->offset;
    }
    return wanted;
}

void ChunkOrigin::fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) {
    const auto place = domain::parse_place(request.etag);
    if (!place || request.size_bytes > place->chunk_bytes - place->offset) {
        done(fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' of {}: not a sample of a chunk", request.key, describe())));
        return;
    }
    OriginFetch wanted = in_chunk(*place, request.size_bytes);
    wanted.attempts = request.attempts;
    auto deliver = [key = std::move(request.key),
                    size_bytes = request.size_bytes,
                    crc = place->crc32c,
                    done = std::move(done)](Result<OriginBytes> bytes) {
        if (!bytes) {
            done(fail(bytes.error().prefixed(fmt::format("'{}'", key))));
            return;
        }
        bytes->payload.resize(size_bytes);
        bytes->stored_crc32c = crc;
        done(std::move(bytes));
    };
    chunks_->fetch(std::move(wanted), std::move(deliver));
}

}  // namespace

std::unique_ptr<Origin> make_chunk_origin(std::unique_ptr<Origin> chunks) {
    return std::make_unique<ChunkOrigin>(std::move(chunks));
}

}  // namespace stoker::sidecar
