#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/manifest.h"
#include "sidecar/origin/chunk_reads.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// The samples of the tar shards of a listing (common/domain/tar_index.h): those in `known`
// (nullptr: none) of shards with the same size and ETag. The headers of the other shards are read
// in ranges of at most 1 MiB, up to 64 shards at a time. Objects that are no shards are left out.
// Blocking; `progress` gets the number of samples so far. kNotFound: no shard. kInvalidArgument: a
// compressed shard, or as TarIndex::take().
Result<domain::Listing> list_shards(
    Origin& origin,
    const domain::Listing& objects,
    const domain::ManifestView* known,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

// The samples of tar shards as an origin (range_origin.h). `shards` is the origin of the shards. A sample's
// ETag is its domain::RangePlace; there is no checksum.
std::unique_ptr<Origin> make_shard_origin(
    std::unique_ptr<Origin> shards, ChunkReads::Limits limits);

}  // namespace stoker::sidecar
