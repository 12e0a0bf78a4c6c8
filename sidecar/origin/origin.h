#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/manifest.h"

namespace stoker::sidecar {

// A part of a listed object; in a format whose samples are parts of objects, a part of a sample.
struct OriginSlice {
    std::uint64_t offset = 0;
    std::uint64_t object_bytes = 0;  // size of the whole object, from the listing
};

struct OriginFetch {
    std::string key;               // relative to the dataset's root
    std::string etag;              // from the manifest; the object must still have it
    std::uint64_t size_bytes = 0;  // from the manifest, likewise; with `slice`: bytes wanted

    // OriginBytes::attempts of an earlier fetch whose bytes did not match stored_crc32c: the origin
    // waits before it tries again, or gives up with kCorruption.
    std::uint32_t attempts = 0;

    std::optional<OriginSlice> slice{};  // nullopt: the whole object; if set, size_bytes is not 0

    // Offset in the object of the first wanted byte.
    [[nodiscard]] std::uint64_t begin() const { return slice ? slice->offset : 0; }

    // Bytes of the whole object.
    [[nodiscard]] std::uint64_t whole_bytes() const {
        return slice ? slice->object_bytes : size_bytes;
    }
};

// A finished fetch: its bytes and statistics.
struct OriginBytes {
    std::vector<std::byte> payload;  // exactly size_bytes long
    Duration first_byte{};           // time to the first byte of the answer
    // HTTP requests of this fetch, retries included; 0: several fetches shared the request, and
    // another one of them counts it.
    std::uint32_t requests = 1;
    // Time from the start of the successful request (for directories: from opening the file) to the
    // end of its answer; without the wait for a slot and failed attempts, but with opening a
    // connection if none was idle. Zero: the object was fetched in several parts, or together with
    // others.
    Duration request_time{};
    // The checksum stored with the object, so that the caller can compare the payload with it. A
    // slice has the checksum of its whole sample, if the format stores one.
    std::optional<std::uint32_t> stored_crc32c{};
    // How often the object was read, including OriginFetch::attempts. For an object fetched in
    // several parts: of the part that was read most often.
    std::uint32_t attempts = 1;
};

// The result of one of several fetches.
struct OriginAnswer {
    Result<OriginBytes> bytes;
    // Number of requests that failed: 1, or 0 if another fetch of the same request counts it.
    std::uint32_t failed_requests = 1;
};

// A fetch, and the function that receives its result.
struct OriginRequest {
    OriginFetch fetch;
    std::function<void(OriginAnswer)> done;
};

// How much work an origin can use at a time.
struct OriginCapacity {
    std::uint32_t fetches = 64;   // of the own party; more of them would wait in the origin
    std::uint32_t requests = 64;  // of all parties
};

// A dataset's source: an S3 bucket and prefix, or a directory. Thread-safe. Retries inside, bounded
// and with jitter (Retry-After obeyed); an error is final for its call, and its message names the
// key and quotes the origin.
//
// Errors: kForbidden (403, bad credentials), kNotFound (bucket, or object gone since the listing),
// kConflict (ETag or size differ from the manifest), kUnavailable (5xx, throttled, no connection,
// after all retries), kCorruption (the bytes never match the object's stored checksum),
// kResourceExhausted (larger than a fetch may hold: the client reads it itself), kInvalidArgument
// (any other refusal), kCancelled. Full table: docs/design/origin.md.
class Origin {
public:
    virtual ~Origin() = default;

    // A name for messages: "s3://bucket/prefix at http://endpoint".
    [[nodiscard]] virtual std::string describe() const = 0;

    // Whether the origin's credentials are present, or none are needed. Cheap; any thread.
    [[nodiscard]] virtual bool has_key() const { return true; }

    // The current capacity; changes over time, because an S3 origin measures it. Cheap; any thread.
    [[nodiscard]] virtual OriginCapacity capacity() const { return {}; }

    // Lists every object below the root in any order, without folders (keys that end in '/').
    // Blocking; calls `progress` with the number of objects so far on the calling thread. Must
    // return before the origin is destroyed.
    virtual Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) = 0;

    // Lists again. For objects unchanged since `known`, an earlier manifest of this origin, their
    // samples may be taken from it, so that the objects are not read to find them.
    virtual Result<domain::Listing> list_again(
        const domain::ManifestView& known,
        const std::function<void(std::uint64_t)>& progress,
        std::stop_token stop) {
        static_cast<void>(known);
        return list(progress, std::move(stop));
    }

    // Starts a fetch and returns at once. Calls `done` once on a thread of the origin; `done` must
    // not block. At most capacity().requests run at a time; the others wait in order. Destruction
    // calls `done` of all unfinished fetches with kCancelled.
    virtual void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) = 0;

    // Calls fetch() for each request. An origin may combine neighbouring bytes in one HTTP request.
    virtual void fetch_together(std::vector<OriginRequest> requests) {
        for (OriginRequest& request : requests) {
            fetch(
                std::move(request.fetch),
                [done = std::move(request.done)](Result<OriginBytes> bytes) {
                    done({std::move(bytes)});
                });
        }
    }
};

}  // namespace stoker::sidecar
