#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/http/headers.h"
#include "sidecar/origin/credentials.h"

// AWS Signature Version 4 in header form. Pure; thread-safe.
// Source: Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header".
namespace stoker::sidecar {

// Percent-encoding as signatures require it (RFC 3986, section 2): keeps A-Z a-z 0-9 - . _ ~ and,
// with `keep_slash`, '/'; every other byte becomes %XX in upper-case hex.
std::string percent_encode(std::string_view text, bool keep_slash);

// Names and values, before percent-encoding.
using Query = std::vector<std::pair<std::string, std::string>>;

// SHA-256 of an empty payload, as for every GET.
inline constexpr std::string_view kEmptyPayloadHash =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct SigningScope {
    std::string region;
    std::string service = "s3";
};

struct UnsignedRequest {
    std::string method = "GET";
    std::string path;  // percent-encoded, as sent, starting with '/'; S3 never encodes twice
    Query query{};
    http::Headers headers{};  // all of them will be signed; must contain Host
    std::string payload_hash{kEmptyPayloadHash};
};

// The encoded query in signature order, "a=1&b=%2F"; the request must contain exactly this text.
std::string canonical_query(const Query& query);

// The canonical request and the string to sign, for tests and for comparing signatures.
std::string canonical_request(const UnsignedRequest& request);
std::string string_to_sign(const UnsignedRequest& request, const SigningScope& scope, WallTime now);

// The signature of `request` with `secret`, in hex. A client signs with it; a server compares it.
std::string signature_of(
    const UnsignedRequest& request,
    const SigningScope& scope,
    const std::string& secret,
    WallTime now);

// SHA-256 in lower-case hex.
std::string sha256_hex(std::string_view text);

// All headers to send: the given ones, x-amz-content-sha256, x-amz-date, x-amz-security-token (if
// there is a token), Authorization.
http::Headers sign(
    UnsignedRequest request,
    const SigningScope& scope,
    const Credentials& credentials,
    WallTime now);

}  // namespace stoker::sidecar
