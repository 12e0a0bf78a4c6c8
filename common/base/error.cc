#include "common/base/error.h"

#include <fmt/core.h>

namespace stoker {

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
            return "invalid_argument";
        case ErrorCode::kNotFound:
            return "not_found";
        case ErrorCode::kAlreadyExists:
            return "already_exists";
        case ErrorCode::kConflict:
            return "conflict";
        case ErrorCode::kGone:
            return "gone";
        case ErrorCode::kForbidden:
            return "forbidden";
        case ErrorCode::kUnavailable:
            return "unavailable";
        case ErrorCode::kDeadlineExceeded:
            return "deadline_exceeded";
        case ErrorCode::kResourceExhausted:
            return "resource_exhausted";
        case ErrorCode::kCorruption:
            return "corruption";
        case ErrorCode::kCancelled:
            return "cancelled";
        case ErrorCode::kInternal:
            return "internal";
    }
    return "internal";
}

bool is_retryable(ErrorCode code) {
    return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
}

Error Error::prefixed(std::string_view context) const {
    return Error{code, fmt::format("{}: {}", context, message)};
}

}  // namespace stoker
