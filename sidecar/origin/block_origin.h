#pragma once

#include <memory>

#include "common/base/bytes.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// Large objects as an origin of their blocks (common/domain/block_format.h): list() names blocks
// instead of objects, fetch() reads a block by one range request with If-Match. `objects` is the
// origin of the objects. An object of at most `block_bytes` is one sample.
//
// A block's ETag is its place (domain::BlockPlace), so fetches work with the manifest of an earlier
// process, whatever its block size was. A replaced object has another ETag, so reading it fails
// with kConflict: blocks of two versions are never mixed.
std::unique_ptr<Origin> make_block_origin(std::unique_ptr<Origin> objects, Bytes block_bytes);

}  // namespace stoker::sidecar
