#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/http_client.h"
#include "sidecar/origin/credentials.h"

// S3 requests as values; sends nothing. Pure.
namespace stoker::sidecar {

// Domain suffix of AWS host names in a region.
std::string_view amazon_domain(std::string_view region);

// A bucket and a folder in it.
struct S3Location {
    std::string scheme;  // "http" or "https"
    std::string host;    // of the endpoint, with the port unless it is the scheme's own
    std::string bucket;
    std::string prefix;  // prefix of every key: empty, or ends in '/'
    std::string region;
    bool path_style = true;  // http://host/bucket/key instead of http://bucket.host/key

    // For messages: "s3://bucket/prefix at http://endpoint".
    [[nodiscard]] std::string describe() const;
};

// `uri` is s3://bucket or s3://bucket/folder, taken literally (no percent-decoding). Empty
// `endpoint`: AWS's endpoint of the region. Without `path_style`, requests to AWS put the bucket
// into the host name (if the bucket has no dot), and requests to other endpoints put it into the
// path. kInvalidArgument: another scheme, an invalid bucket name, or an endpoint that is not
// http(s)://host[:port].
Result<S3Location> parse_s3_location(
    std::string_view uri,
    std::string_view endpoint,
    std::string_view region,
    std::optional<bool> path_style);

struct ByteRange {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // never 0

    bool operator==(const ByteRange&) const = default;
};

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

}  // namespace stoker::sidecar
