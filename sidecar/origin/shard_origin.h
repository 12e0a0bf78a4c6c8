#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/domain/shard_format.h"
#include "sidecar/origin/chunk_reads.h"
#include "sidecar/origin/origin.h"
#include "sidecar/origin/retry.h"

namespace stoker::sidecar {

// How often a listing tries to read a window of a shard before the listing fails.
constexpr std::uint32_t kWindowTriesMax = 3;

// Makes an origin of the samples in shards (range_origin.h). `shards` is the origin of the shards
// themselves. A sample's ETag is its domain::RangePlace.
//
// list() reads the shards' indexes in windows (common/domain/shard_index.h), up to 64 shards at a
// time. If the origin fails to deliver a window for now, in spite of its own retries, the window is
// requested again with the delays of `retry`, whose jitter `seed` seeds. list_again() copies the
// samples of shards with the same size and ETag from the earlier manifest, except for shards with
// an object beside them. Rows whose listing certainly needs more than 3/4 of `memory_max` bytes are
// refused before the first one is listed (kResourceExhausted); nullopt: no limit. Other errors:
// those of Origin, find_shards(), open_shard(), ShardIndex::take() and no_samples().
std::unique_ptr<Origin> make_shard_origin(
    std::unique_ptr<Origin> shards,
    domain::ShardFormat format,
    RetryPolicy retry,
    std::uint64_t seed,
    ChunkReads::Limits limits,
    std::optional<std::uint64_t> memory_max);

}  // namespace stoker::sidecar
