#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

// What the caller should do about a failure. Few on purpose: the code steers, the message explains.
enum class ErrorCode : std::uint8_t {
    kInvalidArgument,    // the input is wrong; repeating it will not help
    kNotFound,           // the thing does not exist (yet)
    kAlreadyExists,      // somebody made it first
    kConflict,           // it changed under us; read again and redo
    kGone,               // it existed and never comes back under this name or version
    kForbidden,          // not allowed; a person has to change something
    kUnavailable,        // try again later
    kDeadlineExceeded,   // took too long; may have happened
    kResourceExhausted,  // disk, memory, quota or a bound of ours is full
    kCorruption,         // bytes that do not match their checksum or format
    kCancelled,          // we were asked to stop
    kInternal,           // a bug of ours, or a library's
};

// The stable lower-case name of a code, for logs and metric labels, such as "not_found".
std::string_view to_string(ErrorCode code);

// True for failures that may pass by themselves: kUnavailable and kDeadlineExceeded.
// This is the only place that says so.
bool is_retryable(ErrorCode code);

// A failure as a value. `message` is one line for people: what happened and, where we know it, what
// to do next.
struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message;

    // The same error with where it happened in front: "listing Datasets: connection refused".
    [[nodiscard]] Error prefixed(std::string_view context) const;

    bool operator==(const Error&) const = default;
};

}  // namespace stoker
