#include "sidecar/s3/verify_signature.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <openssl/crypto.h>

#include "common/http/headers.h"
#include "sidecar/origin/s3_xml.h"

namespace stoker::s3 {

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kUnsigned = "UNSIGNED-PAYLOAD";

// The signature and its terms, as stated by the client.
struct Claim {
    std::string_view credential;      // key/date/region/service/aws4_request
    std::string_view signed_headers;  // "host;x-amz-date"
    std::string_view signature;       // hex
    std::string_view time;
    std::string payload_hash;
    std::optional<Duration> lifetime;  // of a presigned URL
};

std::vector<std::string_view> split(std::string_view text, char mark) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = text.find(mark);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

S3Error malformed(std::string message) {
    return {400, "AuthorizationHeaderMalformed", std::move(message)};
}

// "AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…"; blanks are optional.
std::optional<Claim> claim_of_header(const S3Call& call) {
    std::string_view text = call.head.header("authorization");
    if (!text.starts_with(kAlgorithm)) {
        return std::nullopt;
    }
    text.remove_prefix(kAlgorithm.size());
    Claim claim;
    for (std::string_view part : split(text, ',')) {
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        const auto equals = part.find('=');
        const std::string_view name = part.substr(0, equals);
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1);
        if (name == "Credential") {
            claim.credential = value;
        } else if (name == "SignedHeaders") {
            claim.signed_headers = value;
        } else if (name == "Signature") {
            claim.signature = value;
        }
    }
    claim.time = call.head.header("x-amz-date");
    claim.payload_hash = call.head.header("x-amz-content-sha256");
    return claim;
}

std::optional<Claim> claim_of_query(const S3Call& call) {
    if (call.parameter("X-Amz-Algorithm") != kAlgorithm) {
        return std::nullopt;
    }
    Claim claim;
    claim.credential = call.parameter("X-Amz-Credential").value_or("");
    claim.signed_headers = call.parameter("X-Amz-SignedHeaders").value_or("");
    claim.signature = call.parameter("X-Amz-Signature").value_or("");
    claim.time = call.parameter("X-Amz-Date").value_or("");
    claim.payload_hash = kUnsigned;
    const std::string_view hash = call.head.header("x-amz-content-sha256");
    if (!hash.empty()) {
        claim.payload_hash = hash;
    }
    const std::string_view text = call.parameter("X-Amz-Expires").value_or("");
    std::int64_t seconds = -1;
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    const auto longest = std::chrono::duration_cast<std::chrono::seconds>(kPresignedMax).count();
    const bool is_allowed = seconds >= 0 && seconds <= longest;
    claim.lifetime = std::chrono::seconds{is_allowed ? seconds : 0};
    return claim;
}

// The request as the client signed it: with the headers that the signature names.
sidecar::UnsignedRequest signed_request(const S3Call& call, const Claim& claim) {
    sidecar::UnsignedRequest request;
    request.method = call.head.method;
    // S3 signs the encoded form of the decoded path; clients leave different bytes unencoded.
    request.path = sidecar::percent_encode(
        sidecar::percent_decode(call.head.path, false).value_or(call.head.path), true);
    request.payload_hash = claim.payload_hash;
    for (const auto& entry : call.query) {
        if (entry.first != "X-Amz-Signature") {
            request.query.push_back(entry);
        }
    }
    const auto names = split(claim.signed_headers, ';');
    for (const http::Header& header : call.head.headers) {
        const bool is_signed = std::ranges::any_of(names, [&](std::string_view name) {
            return http::equal_ignoring_case(name, header.name);
        });
        if (is_signed) {
            request.headers.push_back(header);
        }
    }
    return request;
}

std::optional<S3Error> check_time(const Claim& claim, WallTime signed_at, WallTime now) {
    if (signed_at - now > kClockSkewMax) {
        return S3Error{403, "RequestTimeTooSkewed", "the request was signed in the future"};
    }
    if (claim.lifetime && now - signed_at > *claim.lifetime) {
        return S3Error{403, "AccessDenied", "Request has expired"};
    }
    if (!claim.lifetime && now - signed_at > kClockSkewMax) {
        return S3Error{
            403, "RequestTimeTooSkewed", "the request was signed more than 15 minutes ago"};
    }
    return std::nullopt;
}

std::optional<S3Error> check_claim(
    const S3Call& call, const Claim& claim, const LoopbackKey& key, WallTime now) {
    const auto scope = split(claim.credential, '/');
    const auto signed_at = parse_amz_time(claim.time);
    const auto names = split(claim.signed_headers, ';');
    if (scope.size() != 5 || scope[4] != "aws4_request" || !signed_at ||
        scope[1] != claim.time.substr(0, 8) || std::ranges::find(names, "host") == names.end()) {
        return malformed(
            "the credential, the time or the signed headers are not in the form of SigV4");
    }
    if (scope[0] != key.access_key_id) {
        return S3Error{
            403,
            "InvalidAccessKeyId",
            "the access key is not this pod's loopback key ($STOKER_S3_ACCESS_KEY)"};
    }
    if (auto error = check_time(claim, *signed_at, now)) {
        return error;
    }
    const std::string expected = sidecar::signature_of(
        signed_request(call, claim),
        {std::string{scope[2]}, std::string{scope[3]}},
        key.secret_access_key,
        *signed_at);
    if (!equal_in_constant_time(expected, claim.signature)) {
        return S3Error{
            403,
            "SignatureDoesNotMatch",
            "the signature does not match: check the secret key of this endpoint"};
    }
    return std::nullopt;
}

}  // namespace

std::optional<WallTime> parse_amz_time(std::string_view text) {
    constexpr std::string_view kForm = "dddddddd.dddddd.";
    if (text.size() != kForm.size() || text[8] != 'T' || text[15] != 'Z') {
        return std::nullopt;
    }
    const auto number = [&](std::size_t at, std::size_t length) {
        int value = 0;
        const char* end = text.data() + at + length;
        const auto read = std::from_chars(text.data() + at, end, value);
        return read.ec == std::errc{} && read.ptr == end ? value : -1;
    };
    const std::chrono::year_month_day day{
        std::chrono::year{number(0, 4)},
        std::chrono::month{static_cast<unsigned>(number(4, 2))},
        std::chrono::day{static_cast<unsigned>(number(6, 2))}};
    const int hour = number(9, 2);
    const int minute = number(11, 2);
    const int second = number(13, 2);
    if (!day.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60) {
        return std::nullopt;
    }
    return std::chrono::sys_days{day} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
           std::chrono::seconds{second};
}

std::optional<S3Error> verify_signature(const S3Call& call, const LoopbackKey& key, WallTime now) {
    auto claim = claim_of_header(call);
    if (!claim) {
        claim = claim_of_query(call);
    }
    if (!claim) {
        return S3Error{
            403,
            "AccessDenied",
            "the request has no AWS4-HMAC-SHA256 signature; this endpoint "
            "needs the pod's loopback key"};
    }
    return check_claim(call, *claim, key, now);
}

}  // namespace stoker::s3
