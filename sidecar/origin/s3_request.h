#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/domain/byte_range.h"
#include "common/http/http_client.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/origin/s3_location.h"
#include "sidecar/origin/sigv4.h"

// S3 requests as values, signed (sigv4.h); sends nothing. Pure.
namespace stoker::sidecar {

using domain::ByteRange;

// One page of ListObjectsV2 below the prefix; empty `token`: the first. Without credentials the
// request is not signed.
http::HttpRequest list_request(
    const S3Location& location,
    const std::string& token,
    const std::optional<Credentials>& credentials,
    WallTime now);

// Gets the object prefix + `key`, or `range` of it, if it still has this ETag. Asks for its stored
// checksum.
http::HttpRequest get_request(
    const S3Location& location,
    const std::string& key,
    const std::string& etag,
    std::optional<ByteRange> range,
    const std::optional<Credentials>& credentials,
    WallTime now);

// Stores `body` as the object prefix + `key`. The signature covers the body.
http::HttpRequest put_request(
    const S3Location& location,
    const std::string& key,
    std::string body,
    const std::optional<Credentials>& credentials,
    WallTime now);

}  // namespace stoker::sidecar
