#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "operator/api/json.h"

namespace stoker::control {

// One of `details.causes` of a Kubernetes Status.
struct StatusCause {
    std::string reason;  // "FieldManagerConflict"
    std::string message;
    std::string field;

    bool operator==(const StatusCause&) const = default;
};

// A refusal of the API server: metav1.Status, or a substitute for a response that is not one (a
// proxy's page).
struct ApiFailure {
    int http_status = 0;
    std::string reason;  // "AlreadyExists"; "" when the body was no Status
    std::string message;
    std::vector<StatusCause> causes;
    std::optional<Duration> retry_after;  // the header, or details.retryAfterSeconds

    // The code below and one line with the server's message, for callers that need no details.
    //   400 405 406 413 415 422   kInvalidArgument
    //   401 403                   kForbidden; kGone in a namespace that terminates: no retry helps
    //   404                       kNotFound
    //   408 504                   kDeadlineExceeded
    //   409                       kConflict, or kAlreadyExists by its reason
    //   410                       kGone
    //   507                       kResourceExhausted
    //   429, other 5xx            kUnavailable
    //   anything else             kInternal
    [[nodiscard]] Error error() const;

    [[nodiscard]] bool has_cause(std::string_view cause) const;
    // The server no longer knows the resource version or the continue token.
    [[nodiscard]] bool is_expired() const;
    // The resource version is ahead of the server's (after a restore of its database, or from a
    // stale cache).
    [[nodiscard]] bool is_resource_version_too_large() const;
    [[nodiscard]] bool is_too_many_requests() const;
    [[nodiscard]] bool is_internal() const;
};

// Parses a response's status, body and Retry-After header (whole seconds; anything else counts as
// absent).
ApiFailure read_failure(int http_status, std::string_view body, std::string_view retry_after = {});

// Parses the object of a watch's ERROR event.
ApiFailure read_status(const web::json::value& status);

}  // namespace stoker::control
