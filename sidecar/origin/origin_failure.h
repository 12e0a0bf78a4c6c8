#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/headers.h"

// Classifies failed requests to an origin: which error, and whether a retry may succeed. Pure.
namespace stoker::sidecar {

// A failed attempt, for the retry policy and the user.
struct OriginFailure {
    Error error{};
    bool may_pass = false;
    std::optional<Duration> retry_after{};

    // The origin is overloaded, or does not answer.
    [[nodiscard]] bool is_push_back() const {
        return may_pass && (error.code == ErrorCode::kUnavailable ||
                            error.code == ErrorCode::kDeadlineExceeded);
    }
};

// A permanent failure: the object is not the one that was listed.
OriginFailure conflict(std::string message);

// A permanent failure: the origin, or its answer, is not usable.
OriginFailure refuse(std::string message);

// A call that ended without an answer: `error` is the HTTP client's.
OriginFailure failure_of_transport(Error error);

// The error code of a status that is not 2xx. `may_pass`: a retry may succeed.
ErrorCode error_code_of(int status, bool may_pass);

// The delay of a Retry-After header; nullopt: it is missing or malformed.
std::optional<Duration> retry_after(const http::Headers& headers, WallTime now);

// The opaque part of an ETag header, without quotes and "W/".
std::string_view bare_etag(std::string_view value);

}  // namespace stoker::sidecar
