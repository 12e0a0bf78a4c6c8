#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/chunk_format.h"
#include "common/domain/listing.h"
#include "sidecar/origin/origin.h"

// Reads a pack's metadata: its index, or the headers of its chunks. All calls block and must not
// run on a thread of the origin. Errors: those of Origin::fetch() and chunk_format.h; kCancelled:
// stopped.
namespace stoker::sidecar {

// The chunks in a listing, in order of number; leaves out every other object.
std::vector<domain::ListedObject> chunks_of(const std::vector<domain::ListedObject>& objects);

// The first `length` bytes of an object, read in consecutive slices. `length` must not exceed the
// object's size.
Result<std::vector<std::byte>> read_begin(
    Origin& origin,
    const domain::ListedObject& object,
    std::uint64_t length,
    const std::stop_token& stop,
    Bytes slice_bytes = mib(1));

// A whole object of any size, read in consecutive slices. The default slice is the smallest
// `memory` setting of a sidecar, whose origin fetches nothing larger.
Result<std::vector<std::byte>> read_object(
    Origin& origin,
    const domain::ListedObject& object,
    const std::stop_token& stop,
    Bytes slice_bytes = mib(1));

// Reads the headers of these chunks, in order, by range requests. Calls `progress` with the number
// of samples so far.
Result<std::vector<domain::ChunkHeader>> read_headers(
    Origin& origin,
    const std::vector<domain::ListedObject>& chunks,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

// The samples of a pack; `objects`: the listing of its objects. Without a valid index that fits the
// chunks, reads all headers and calls `progress` as read_headers() does. An index fits if chunk 0
// belongs to its pack, and the chunks have the number and lengths that it states. kInvalidArgument:
// no complete pack.
Result<domain::Listing> list_packed(
    Origin& origin,
    const std::vector<domain::ListedObject>& objects,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

}  // namespace stoker::sidecar
