#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "sidecar/origin/s3_location.h"
#include "sidecar/origin/sigv4.h"
#include "sidecar/s3/s3_call.h"

// Converts a client's request for the origin: addressed to the origin's host and signed with the
// pod's own credentials. Pure.
namespace stoker::s3 {

struct ForwardRequest {
    std::string url;
    http::Headers headers;
    bool decodes_chunks =
        false;  // aws-chunked with signatures of the loopback key: send the payload
    std::optional<std::uint64_t> length;  // of the body that is sent; nullopt: not known before
};

// `origin` provides host, region and style; the bucket comes from the call. `credentials` nullopt:
// the request is not signed.
ForwardRequest forward_request(
    const S3Call& call,
    const sidecar::S3Location& origin,
    const std::optional<sidecar::Credentials>& credentials,
    WallTime now);

// Whether a header belongs to one connection only (RFC 9110, 7.6.1).
bool is_hop_by_hop(std::string_view name);

}  // namespace stoker::s3
