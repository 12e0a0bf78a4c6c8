#include "sidecar/origin/origin_failure.h"

#include <string>
#include <utility>

#include <fmt/core.h>

#include "sidecar/origin/retry.h"

namespace stoker::sidecar {

OriginFailure conflict(std::string message) {
    return {{ErrorCode::kConflict, std::move(message)}};
}

OriginFailure refuse(std::string message) {
    return {{ErrorCode::kInvalidArgument, std::move(message)}};
}

OriginFailure failure_of_transport(Error error) {
    const bool may_pass = is_retryable(error.code);
    if (error.code == ErrorCode::kDeadlineExceeded) {
        error.code = ErrorCode::kUnavailable;  // reads are always safe to repeat
    }
    return {std::move(error), may_pass};
}

ErrorCode error_code_of(int status, bool may_pass) {
    if (status == 401 || status == 403) {
        return ErrorCode::kForbidden;
    }
    if (may_pass) {
        return ErrorCode::kUnavailable;
    }
    switch (status) {
        case 404:
        case 410:
            return ErrorCode::kNotFound;
        case 409:
        case 412:
        case 416:  // the object is shorter than listed
            return ErrorCode::kConflict;
        default:
            return status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument;
    }
}

std::optional<Duration> retry_after(const http::Headers& headers, WallTime now) {
    const std::string* value = http::find_header(headers, "Retry-After");
    return value == nullptr ? std::nullopt : parse_retry_after(*value, now);
}

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

}  // namespace stoker::sidecar
