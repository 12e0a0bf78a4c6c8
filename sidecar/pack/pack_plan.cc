#include "sidecar/pack/pack_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/base/prng.h"
#include "common/domain/manifest_writer.h"

namespace stoker::sidecar {

namespace {

using domain::ListedObject;
using domain::PackOrder;

constexpr std::uint64_t kTableBytesMax = std::uint64_t{16} << 20U;

// The pack's id. ManifestWriter checks the listing; its revision covers key, size and ETag of all.
Result<domain::PackIdentity> identity_of(
    const std::vector<ListedObject>& objects, const PackSettings& settings) {
    STOKER_TRY(auto listing, domain::Listing::of(objects));
    STOKER_TRY(const auto manifest, domain::ManifestWriter::create(std::move(listing)));
    domain::PackIdentity pack;
    pack.order = settings.order;
    pack.seed = settings.order == PackOrder::kRandom ? settings.seed : 0;
    std::uint64_t id = manifest.revision().value();
    for (const std::uint64_t part :
         {pack.seed, static_cast<std::uint64_t>(pack.order), settings.chunk_bytes.count()}) {
        id = Prng{id ^ part}();
    }
    pack.id = domain::PackId{id};
    return pack;
}

void shuffle(std::vector<ListedObject>& objects, std::uint64_t seed) {
    Prng random{seed};
    for (std::size_t left = objects.size(); left > 1; --left) {
        std::swap(objects[left - 1], objects[random.below(left)]);
    }
}

}  // namespace

Result<std::vector<PlannedChunk>> plan_pack(
    std::vector<ListedObject> objects, const PackSettings& settings) {
    STOKER_TRY(domain::PackIdentity pack, identity_of(objects, settings));
    std::ranges::sort(objects, {}, &ListedObject::key);
    if (settings.order == PackOrder::kRandom) {
        shuffle(objects, settings.seed);
    }
    std::vector<PlannedChunk> chunks;
    Bytes payload = Bytes::unlimited();
    std::uint64_t table_bytes = 0;
    for (ListedObject& object : objects) {
        if (object.key.size() > domain::kSampleNameBytesMax) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "the key of {} bytes that begins with '{}' is too long to be packed",
                    object.key.size(),
                    object.key.substr(0, 64)));
        }
        if (payload >= settings.chunk_bytes || table_bytes >= kTableBytesMax) {
            const auto number = static_cast<std::uint32_t>(chunks.size());
            chunks.emplace_back().header.number = number;
            payload = Bytes::zero();
            table_bytes = 0;
        }
        payload += Bytes{object.size_bytes};
        table_bytes += domain::kChunkSampleBytes + object.key.size();
        chunks.back().header.samples.push_back({std::move(object.key), object.size_bytes, 0});
        chunks.back().etags.push_back(std::move(object.etag));
    }
    pack.chunk_count = static_cast<std::uint32_t>(chunks.size());
    for (PlannedChunk& chunk : chunks) {
        chunk.header.pack = pack;
    }
    return chunks;
}

}  // namespace stoker::sidecar
