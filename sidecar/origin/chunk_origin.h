#pragma once

#include <memory>

#include "sidecar/origin/chunk_reads.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// The samples of a pack (common/domain/chunk_format.h) as an origin (range_origin.h). `chunks` is the origin
// of the chunks. A sample's ETag is its domain::ChunkPlace. Bytes come with their checksum from the
// chunk's header.
std::unique_ptr<Origin> make_chunk_origin(
    std::unique_ptr<Origin> chunks, ChunkReads::Limits limits);

}  // namespace stoker::sidecar
