#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/result.h"
#include "sidecar/origin/origin.h"
#include "sidecar/pack/object_writer.h"
#include "sidecar/pack/pack_plan.h"

// `stoker pack`: reads samples from an origin and writes them as chunks. Blocking; not for a thread
// of an origin.
namespace stoker::sidecar {

// Where the chunks are. `origin` reads what `writer` writes.
struct PackTarget {
    Origin& origin;
    ObjectWriter& writer;
};

struct PackOptions {
    PackSettings settings{};
    std::uint32_t threads = 4;  // each holds one chunk in memory; at least 1
    bool verify = true;         // read every chunk back before the index is written
};

struct PackProgress {
    std::uint32_t chunk_count = 0;
    std::uint32_t written = 0;
    std::uint32_t found = 0;  // chunks finished by an earlier run
    std::uint32_t verified = 0;
    std::uint64_t samples = 0;  // of the whole pack
    std::uint64_t payload_bytes = 0;
};

// Called on several threads, one at a time.
using OnPackProgress = std::function<void(const PackProgress&)>;

// Packs every object of `source`. Chunks that an earlier run of the same pack has finished stay as
// they are; the index is written last. kAlreadyExists: the target has chunks of another pack, or
// an object `index` that is not an index of chunks.
// kCorruption: a chunk reads back differently. kCancelled: stopped. Otherwise the errors of the
// origins and of plan_pack().
Result<PackProgress> run_pack(
    Origin& source,
    const PackTarget& target,
    const PackOptions& options,
    const OnPackProgress& on_progress,
    const std::stop_token& stop);

// Writes the index that the chunks at the target imply: byte for byte the one that run_pack() wrote.
// kInvalidArgument: the chunks are not one whole pack. kAlreadyExists: as run_pack().
Result<PackProgress> rebuild_index(const PackTarget& target, const std::stop_token& stop);

}  // namespace stoker::sidecar
