#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/manifest.h"

namespace stoker::sidecar {

struct OriginFetch {
    std::string key;               // relative to the dataset's root
    std::string etag;              // of the manifest: the object must still be this one
    std::uint64_t size_bytes = 0;  // likewise
};

// A finished fetch: its bytes, and how they came.
struct OriginBytes {
    std::vector<std::byte> payload;  // exactly size_bytes long
    Duration first_byte{};           // from sending to the first byte of the answer
    std::uint32_t requests = 1;      // HTTP requests that it took, retries included
};

// Where the bytes come from: an S3 bucket and prefix, or a directory. Thread-safe. Bounded retry
// with jitter is inside (Retry-After obeyed); an error is final for this call and its message names
// the key and repeats the origin's words.
//
// Errors: kForbidden (403, bad credentials), kNotFound (bucket, or object gone since the listing),
// kConflict (another ETag or size than the manifest says), kUnavailable (5xx, throttled, no
// connection, after all retries), kCorruption (not the bytes of the checksum stored with the
// object), kResourceExhausted (larger than a fetch may hold: the client reads it itself),
// kInvalidArgument (what the origin refuses otherwise), kCancelled. docs/design/origin.md has the
// whole table.
class Origin {
public:
    virtual ~Origin() = default;

    // For people: "s3://bucket/prefix at http://endpoint".
    [[nodiscard]] virtual std::string describe() const = 0;

    // Are the credentials there with which it asks, or none needed? Cheap; any thread.
    [[nodiscard]] virtual bool has_key() const { return true; }

    // Every object below the root, in any order, folders (keys that end in '/') left out. Blocking;
    // calls `progress` with the number of objects so far, from the calling thread. Must have
    // returned before the origin is destroyed.
    virtual Result<std::vector<domain::ListedObject>> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) = 0;

    // Starts a fetch and returns at once; `done` is called once, from a thread of the origin, and
    // must not block. At most `max_in_flight` of the origin's options run at a time; more wait in
    // order. After destruction of the origin every `done` has been called (kCancelled for what was
    // cut).
    virtual void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) = 0;
};

}  // namespace stoker::sidecar
