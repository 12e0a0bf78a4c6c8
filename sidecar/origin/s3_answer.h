#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/headers.h"
#include "sidecar/origin/s3_request.h"

// What an S3 server's answer means: is it the object that the manifest promised, and if not, whose
// fault is it and will it pass. Pure.
namespace stoker::sidecar {

// An attempt that failed, as the retry policy and the user want to know it.
struct S3Failure {
    Error error{};
    bool may_pass = false;
    std::optional<Duration> retry_after{};
};

struct ExpectedBytes {
    std::string etag;
    std::uint64_t size_bytes = 0;      // of the whole object
    std::optional<ByteRange> range{};  // that was asked for; none: all of it

    [[nodiscard]] std::uint64_t length() const { return range ? range->length : size_bytes; }
};

// Judges status and headers of an answer to get_request() with a 2xx status, before its body is
// read: the right ETag, length and range. nullopt: the body is what we want. kConflict: another
// object than listed.
std::optional<S3Failure> check_object_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// A status that is not 2xx, with the error document's words: "403 AccessDenied: Access Denied".
S3Failure failure_of_status(
    int status, const http::Headers& headers, std::string_view body, WallTime now);

// A call that ended without an answer: `error` is the HTTP client's.
S3Failure failure_of_transport(Error error);

// The object's stored CRC-32C from an x-amz-checksum-crc32c header; nullopt where there is none
// that covers the whole object in one piece.
std::optional<std::uint32_t> stored_crc32c(const http::Headers& headers);

}  // namespace stoker::sidecar
