#pragma once

#include <cstdint>
#include <string>

#include "sidecar/s3/s3_call.h"

// Bounds of a GET that goes to the origin although this node may have sent other bytes of the
// object: the version of those bytes, so that a changed object is noticed, and the bytes still to
// send. Pure.
namespace stoker::s3 {

struct ForwardBound {
    std::string etag;         // of the listed version, without quotes; empty: not watched
    bool must_match = false;  // the origin must not answer with another version
    // The bytes of the object that are still to send of a response whose head has been sent; length
    // 0: the origin gives the whole response.
    std::uint64_t rest_offset = 0;
    std::uint64_t rest_length = 0;
    std::uint64_t object_bytes = 0;

    [[nodiscard]] bool is_rest() const { return rest_length > 0; }

    // Content-Range of the bytes still to send (rest_offset, rest_length).
    [[nodiscard]] std::string content_range() const;
};

// The call to send to the origin: with If-Match if the version must match. If only remaining bytes
// are to be sent: with their range, and without the client's conditions, which were already
// checked.
S3Call bound_call(S3Call call, const ForwardBound& bound);

}  // namespace stoker::s3
