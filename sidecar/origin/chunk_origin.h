#pragma once

#include <memory>

#include "sidecar/origin/chunk_reads.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

constexpr std::uint64_t kReadAloneBytes = 4U << 20U;

// The samples of a pack (common/domain/chunk_format.h) as an origin: list() names samples instead of
// chunks, fetch() reads a sample's bytes from its chunk. `chunks` is the origin of the chunks.
//
// A sample's ETag is its place (domain::ChunkPlace), so fetches work with a manifest of an earlier
// process. Bytes come with their checksum from the chunk's header (OriginBytes::stored_crc32c). A
// replaced chunk has another ETag: kConflict, as for an object.
//
// Samples of one chunk that are fetched together, or while others of the chunk wait, share a
// request where the gaps between them cost less than another request (chunk_reads.h). A failed
// request fails only its own samples, and counts once (OriginAnswer::failed_requests); after
// kResourceExhausted each sample is read alone. A sample of kReadAloneBytes or more, and one whose
// bytes were damaged, has its own request. `limits`: of the shared requests. Besides the payloads
// handed out, memory holds the requests in flight, at most twice the bytes asked for.
std::unique_ptr<Origin> make_chunk_origin(
    std::unique_ptr<Origin> chunks, ChunkReads::Limits limits);

}  // namespace stoker::sidecar
