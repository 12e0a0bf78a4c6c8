#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/headers.h"
#include "sidecar/origin/s3_request.h"

// Interprets an S3 server's answer: whether it is the object in the manifest, and if not, which
// error it is and whether a retry may succeed. Pure.
namespace stoker::sidecar {

// A failed attempt, for the retry policy and the user.
struct S3Failure {
    Error error{};
    bool may_pass = false;
    std::optional<Duration> retry_after{};
};

struct ExpectedBytes {
    std::string etag;
    std::uint64_t size_bytes = 0;      // of the whole object
    std::optional<ByteRange> range{};  // the requested range; nullopt: the whole object

    [[nodiscard]] std::uint64_t length() const { return range ? range->length : size_bytes; }
};

// Checks status, ETag, length and range of a 2xx answer to get_request(), before its body is read.
// nullopt: the expected object. kConflict: another object than listed.
std::optional<S3Failure> check_object_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// The failure of a status that is not 2xx; quotes the error document: "403 AccessDenied: Access
// Denied".
S3Failure failure_of_status(
    int status, const http::Headers& headers, std::string_view body, WallTime now);

// A call that ended without an answer: `error` is the HTTP client's.
S3Failure failure_of_transport(Error error);

// The object's stored CRC-32C from an x-amz-checksum-crc32c header; nullopt where there is none
// that covers the whole object in one piece.
std::optional<std::uint32_t> stored_crc32c(const http::Headers& headers);

}  // namespace stoker::sidecar
