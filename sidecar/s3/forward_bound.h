#pragma once

#include <cstdint>
#include <string>

#include "sidecar/s3/s3_call.h"

// A GET of an object of which this node may have sent other parts: the listed version that they have,
// to tell when the origin has another one. Pure.
namespace stoker::s3 {

struct ForwardBound {
    std::string etag;         // of the listed version, without quotes; empty: not watched
    bool must_match = false;  // the origin must not answer with another version
    // The bytes of the object that are left of a response whose head has been sent; 0: the origin
    // gives the whole response.
    std::uint64_t rest_offset = 0;
    std::uint64_t rest_length = 0;
    std::uint64_t object_bytes = 0;

    [[nodiscard]] bool is_rest() const { return rest_length > 0; }

    // The Content-Range that the rest has.
    [[nodiscard]] std::string content_range() const;
};

// The call, if it must match with If-Match, and for a rest with its range and without the client's conditions, which
// have been answered.
S3Call bound_call(S3Call call, const ForwardBound& bound);

}  // namespace stoker::s3
