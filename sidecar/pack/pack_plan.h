#pragma once

#include <cstdint>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/chunk_format.h"
#include "common/domain/listing.h"

// Divides a listing into chunks. Pure: equal listings and settings give equal plans, so that an
// interrupted run can be resumed.
namespace stoker::sidecar {

struct PackSettings {
    domain::PackOrder order = domain::PackOrder::kRandom;
    std::uint64_t seed = 0;      // of the random order
    Bytes chunk_bytes = mib(4);  // a chunk is closed when it has this many payload bytes
};

struct PlannedChunk {
    domain::ChunkHeader header;        // its checksums are zero until the samples have been read
    std::vector<std::string> etags{};  // ETags of the samples at the source, in the header's order
};

// Plans chunks with every object once, in the order of the settings. All chunks but the last have
// at least `chunk_bytes` of payload, unless their samples' names reach 16 MiB first.
// kInvalidArgument: as encode_manifest(), or a name that no chunk can hold.
Result<std::vector<PlannedChunk>> plan_pack(
    std::vector<domain::ListedObject> objects, const PackSettings& settings);

}  // namespace stoker::sidecar
