#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/http/headers.h"
#include "sidecar/origin/object_dialect.h"

// Interprets an S3 server's answer: whether it is the object in the manifest, and if not, which
// error it is and whether a retry may succeed. Sends nothing.
namespace stoker::sidecar {

// Checks status, ETag, length and range of a 2xx answer to get_request(), before its body is read.
// nullopt: the expected object. kConflict: another object than listed.
std::optional<OriginFailure> check_object_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers);

// The failure of a status that is not 2xx; quotes the error document: "403 AccessDenied: Access
// Denied".
OriginFailure failure_of_status(
    int status, const http::Headers& headers, std::string_view body, WallTime now);

// The object's stored CRC-32C from an x-amz-checksum-crc32c header; nullopt where there is none
// that covers the whole object in one piece.
std::optional<std::uint32_t> stored_crc32c(const http::Headers& headers);

}  // namespace stoker::sidecar
