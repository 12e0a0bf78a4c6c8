#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "sidecar/s3/s3_call.h"
#include "sidecar/s3/s3_error.h"

// Authenticates clients, which must sign with the pod's loopback key. Pure.
namespace stoker::s3 {

struct LoopbackKey {
    std::string access_key_id;
    std::string secret_access_key;
};

// Longest difference between the request's time stamp and `now`, as for S3.
inline constexpr Duration kClockSkewMax = std::chrono::minutes{15};
// Longest life of a presigned URL, as for S3.
inline constexpr Duration kPresignedMax = std::chrono::hours{7 * 24};

// Checks AWS Signature Version 4, in the Authorization header or in the query (presigned URL), in
// constant time. nullopt: the signature is valid. The error names what is wrong, never a secret:
// AccessDenied (no signature, expired), InvalidAccessKeyId, SignatureDoesNotMatch,
// RequestTimeTooSkewed, AuthorizationHeaderMalformed. The region and the payload's hash are used as
// stated in the request and not checked, because the body is not read here.
std::optional<S3Error> verify_signature(const S3Call& call, const LoopbackKey& key, WallTime now);

// "20130524T000000Z"; nullopt: not a time stamp.
std::optional<WallTime> parse_amz_time(std::string_view text);

}  // namespace stoker::s3
