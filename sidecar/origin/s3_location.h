#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

// Where a dataset is, from its settings. Pure.
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

}  // namespace stoker::sidecar
