#pragma once

#include <cstdint>
#include <string>

#include "sidecar/s3/s3_call.h"

// Limits on a GET that is forwarded to the origin although this node may have sent bytes of the
// object before: the version of those bytes, so that a changed object is noticed, and the bytes
// that remain to be sent. Pure.
namespace stoker::s3 {

struct ForwardBound {
    std::string etag;         // of the listed version, without quotes; empty: not checked
    bool must_match = false;  // the origin must not answer with another version
    // The bytes of the object that remain to be sent after a response's head has been sent; length
    // 0: the origin sends the whole response.
    std::uint64_t rest_offset = 0;
    std::uint64_t rest_length = 0;
    std::uint64_t object_bytes = 0;

    [[nodiscard]] bool is_rest() const { return rest_length > 0; }

    // The Content-Range header for the remaining bytes (rest_offset, rest_length).
    [[nodiscard]] std::string content_range() const;
};

// The call to send to the origin: with If-Match if the version must match. If only the remaining
// bytes are needed: with their range, and without the client's conditions, which were checked
// before.
S3Call bound_call(S3Call call, const ForwardBound& bound);

}  // namespace stoker::s3
