#include "sidecar/origin/s3_answer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <openssl/evp.h>

#include "sidecar/origin/retry.h"
#include "sidecar/origin/s3_xml.h"

namespace stoker::sidecar {

namespace {

// Error codes of S3 and the token service with a 4xx status for which a retry may succeed.
bool is_transient_code(std::string_view code) {
    return code == "RequestTimeout" || code == "SlowDown" || code == "InternalError" ||
           code == "Throttling" || code == "ThrottlingException" || code == "IDPCommunicationError";
}

// Expired credentials. The Secret may be rotated meanwhile, so a few retries may succeed.
bool is_expired_code(std::string_view code) {
    return code == "ExpiredToken" || code == "ExpiredTokenException";
}

// The server's error: "403 AccessDenied: Access Denied"; the status alone if it sent no document.
std::string words_of(int status, const std::optional<S3Error>& document, std::string_view body) {
    if (document) {
        return fmt::format("{} {}: {}", status, document->code, document->message);
    }
    constexpr std::size_t kQuoteMax = 120;
    std::string quote{body.substr(0, kQuoteMax)};
    std::replace_if(
        quote.begin(),
        quote.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20; },
        ' ');
    return quote.empty() ? fmt::format("{} without an explanation", status)
                         : fmt::format("{} '{}'", status, quote);
}

}  // namespace

std::optional<OriginFailure> check_object_head(
    const ExpectedBytes& expected, int status, const http::Headers& headers) {
    const std::string* etag = http::find_header(headers, "ETag");
    if (etag == nullptr || bare_etag(*etag) != expected.etag) {
        return conflict(fmt::format(
            "changed at the origin: ETag {} now, {} when it was listed",
            etag == nullptr ? "missing" : bare_etag(*etag),
            expected.etag));
    }
    const int want_status = expected.range ? 206 : 200;
    if (status != want_status) {
        return refuse(fmt::format("the origin answers {} where {} was due", status, want_status));
    }
    return check_extent(expected, status, headers);
}

OriginFailure failure_of_status(
    int status, const http::Headers& headers, std::string_view body, WallTime now) {
    const auto document = parse_s3_error(body);
    const std::string_view code = document ? std::string_view{document->code} : "";
    const bool expired = is_expired_code(code);
    OriginFailure failure;
    failure.may_pass = is_transient_status(status) || is_transient_code(code) || expired;
    failure.error.code = expired ? ErrorCode::kForbidden : error_code_of(status, failure.may_pass);
    failure.error.message = words_of(status, document, body);
    if (const std::string* region = http::find_header(headers, "x-amz-bucket-region");
        region != nullptr && status != 404 && status < 500) {
        failure.error.message += fmt::format(" (the bucket is in region {})", *region);
    }
    failure.retry_after = retry_after(headers, now);
    return failure;
}

std::optional<std::uint32_t> stored_crc32c(const http::Headers& headers) {
    const std::string* text = http::find_header(headers, "x-amz-checksum-crc32c");
    const std::string* type = http::find_header(headers, "x-amz-checksum-type");
    // Four bytes in base64 are eight characters; "…-3" is a checksum over the checksums of parts.
    if (text == nullptr || text->size() != 8 || (type != nullptr && *type == "COMPOSITE")) {
        return std::nullopt;
    }
    std::array<unsigned char, 6> raw{};
    const auto* in = reinterpret_cast<const unsigned char*>(text->data());
    if (EVP_DecodeBlock(raw.data(), in, static_cast<int>(text->size())) != 6) {
        return std::nullopt;
    }
    return (std::uint32_t{raw[0]} << 24U) | (std::uint32_t{raw[1]} << 16U) |
           (std::uint32_t{raw[2]} << 8U) | std::uint32_t{raw[3]};
}

}  // namespace stoker::sidecar
