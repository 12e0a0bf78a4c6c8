#include "sidecar/origin/s3_answer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <openssl/evp.h>

#include "sidecar/origin/retry.h"
#include "sidecar/origin/s3_xml.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kErrorBodyBytesMax = 64 * 1024;

// Weak validators ("W/") come from proxies that compress; the object itself is the same.
std::string_view bare_etag(std::string_view value) {
    if (value.starts_with("W/")) {
        value.remove_prefix(2);
    }
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
    }
    return value;
}

S3Failure conflict(std::string message) {
    return {{ErrorCode::kConflict, std::move(message)}};
}

// Error codes of S3 and the token service with a 4xx status for which a retry may succeed.
bool is_transient_code(std::string_view code) {
    return code == "RequestTimeout" || code == "SlowDown" || code == "InternalError" ||
           code == "Throttling" || code == "ThrottlingException" || code == "IDPCommunicationError";
}

// Expired credentials. The Secret may be rotated meanwhile, so a few retries may succeed.
bool is_expired_code(std::string_view code) {
    return code == "ExpiredToken" || code == "ExpiredTokenException";
}

ErrorCode error_code_of(int status, bool may_pass, bool expired) {
    if (expired || status == 401 || status == 403) {
        return ErrorCode::kForbidden;
    }
    if (may_pass) {
        return ErrorCode::kUnavailable;
    }
    switch (status) {
        case 404:
            return ErrorCode::kNotFound;
        case 409:
        case 412:
        case 416:  // the object is shorter than listed
            return ErrorCode::kConflict;
        default:
            return status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument;
    }
}

// "403 AccessDenied: Access Denied"; without an error document, the status alone.
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

std::optional<S3Failure> check_object_head(
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
        return S3Failure{
            {ErrorCode::kInvalidArgument,
             fmt::format("the origin answers {} where {} was due", status, want_status)}};
    }
    if (expected.range) {
        const auto& range = *expected.range;
        const std::string want = fmt::format(
            "bytes {}-{}/{}", range.offset, range.offset + range.length - 1, expected.size_bytes);
        const std::string* got = http::find_header(headers, "Content-Range");
        if (got == nullptr || *got != want) {
            return conflict(fmt::format(
                "the origin sends '{}' where '{}' was due", got == nullptr ? "" : *got, want));
        }
    }
    const std::string* length = http::find_header(headers, "Content-Length");
    if (length != nullptr && *length != std::to_string(expected.length())) {
        return conflict(fmt::format(
            "changed at the origin: {} bytes now, {} when it was listed",
            *length,
            expected.length()));
    }
    return std::nullopt;
}

S3Failure failure_of_status(
    int status, const http::Headers& headers, std::string_view body, WallTime now) {
    const auto document = parse_s3_error(body);
    const std::string_view code = document ? std::string_view{document->code} : "";
    const bool expired = is_expired_code(code);
    S3Failure failure;
    failure.may_pass = is_transient_status(status) || is_transient_code(code) || expired;
    failure.error.code = error_code_of(status, failure.may_pass, expired);
    failure.error.message = words_of(status, document, body);
    if (const std::string* region = http::find_header(headers, "x-amz-bucket-region");
        region != nullptr && status != 404 && status < 500) {
        failure.error.message += fmt::format(" (the bucket is in region {})", *region);
    }
    if (const std::string* value = http::find_header(headers, "Retry-After"); value != nullptr) {
        failure.retry_after = parse_retry_after(*value, now);
    }
    return failure;
}

S3Failure failure_of_transport(Error error) {
    const bool may_pass = is_retryable(error.code);
    if (error.code == ErrorCode::kDeadlineExceeded) {
        error.code = ErrorCode::kUnavailable;  // reads are always safe to repeat
    }
    return {std::move(error), may_pass};
}

ObjectAnswer::ObjectAnswer(
    ExpectedBytes expected, std::vector<std::byte>& payload, const Clock& clock)
    : expected_(std::move(expected)),
      payload_(payload),
      clock_(clock),
      sent_at_(clock.now()) {
    if (!expected_.range) {
        payload_.clear();
    }
}

void ObjectAnswer::take_head(int status, const http::Headers& headers) {
    status_ = status;
    headers_ = headers;
    first_byte_ = duration();
    if (is_good_status()) {
        refused_ = check_object_head(expected_, status, headers);
    }
}

bool ObjectAnswer::take_body(std::span<const std::byte> data) {
    if (refused_) {
        return false;
    }
    if (!is_good_status()) {
        error_body_.append(reinterpret_cast<const char*>(data.data()), data.size());
        return error_body_.size() <= kErrorBodyBytesMax;
    }
    if (data.size() > expected_.length() - received_bytes_) {
        refused_ = conflict(fmt::format(
            "changed at the origin: more than the {} bytes listed", expected_.length()));
        return false;
    }
    if (const auto& range = expected_.range) {
        const std::uint64_t at = range->offset - expected_.payload_offset + received_bytes_;
        std::memcpy(payload_.data() + at, data.data(), data.size());
    } else {
        payload_.insert(payload_.end(), data.begin(), data.end());
    }
    received_bytes_ += data.size();
    return true;
}

std::optional<S3Failure> ObjectAnswer::failure(const Status& transport, WallTime now) const {
    if (refused_) {
        return refused_;
    }
    if (status_ != 0 && !is_good_status()) {
        return failure_of_status(status_, headers_, error_body_, now);
    }
    if (!transport) {
        return failure_of_transport(transport.error());
    }
    if (received_bytes_ < expected_.length()) {
        return conflict(fmt::format(
            "changed at the origin: {} bytes now, {} when it was listed",
            received_bytes_,
            expected_.length()));
    }
    return std::nullopt;
}

std::optional<std::uint32_t> ObjectAnswer::stored_checksum() const {
    return expected_.range ? std::nullopt : stored_crc32c(headers_);
}

std::string ObjectAnswer::outcome(const Status& transport) const {
    if (status_ != 0) {
        return std::to_string(status_);
    }
    return transport ? "none" : std::string{to_string(transport.error().code)};
}

http::HttpSink sink_into(std::shared_ptr<ObjectAnswer> answer) {
    http::HttpSink sink;
    sink.on_response = [answer](int status, const http::Headers& headers) {
        answer->take_head(status, headers);
    };
    sink.on_data = [answer = std::move(answer)](std::span<const std::byte> data) {
        return answer->take_body(data);
    };
    return sink;
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
