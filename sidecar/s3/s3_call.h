#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sidecar/origin/sigv4.h"
#include "sidecar/s3/request_head.h"

// The S3 meaning of a request: bucket, key and parameters. Pure.
namespace stoker::s3 {

struct S3Call {
    RequestHead head;
    std::string bucket;            // empty: the service itself (ListBuckets)
    std::string key;               // decoded; empty: the bucket itself
    bool is_virtual_host = false;  // the bucket was in the Host header
    sidecar::Query query;          // decoded, in the order of the request

    // The value of the first parameter of this name; nullopt: absent.
    [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

// Parses path style; or virtual-host style, for Host BUCKET.127.0.0.1 or BUCKET.localhost, with or
// without a port. nullopt: path or query is badly percent-encoded, or contains a NUL byte.
std::optional<S3Call> parse_call(RequestHead head);

}  // namespace stoker::s3
