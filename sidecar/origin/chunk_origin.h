#pragma once

#include <memory>

#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// The samples of a pack (common/domain/chunk_format.h) as an origin: list() names samples instead of
// chunks, fetch() reads a sample's bytes from its chunk. `chunks` is the origin of the chunks.
//
// A sample's ETag is its place (domain::ChunkPlace), so fetches work with a manifest of an earlier
// process. Bytes come with their checksum from the chunk's header (OriginBytes::stored_crc32c). A
// replaced chunk has another ETag: kConflict, as for an object.
std::unique_ptr<Origin> make_chunk_origin(std::unique_ptr<Origin> chunks);

}  // namespace stoker::sidecar
