#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

// The kind of a failure, chosen by what the caller should do next. There are few kinds: code
// decides by the kind, people read the message.
enum class ErrorCode : std::uint8_t {
    kInvalidArgument,    // the input is wrong; repeating it will not help
    kNotFound,           // the thing does not exist (yet)
    kAlreadyExists,      // another writer created it first
    kConflict,           // the object has changed meanwhile; read it again and redo
    kGone,               // the object existed and never comes back under this name or version
    kForbidden,          // not allowed; a person has to change something
    kUnavailable,        // try again later
    kDeadlineExceeded,   // took too long; the operation may have happened
    kResourceExhausted,  // disk, memory, a quota or one of our limits is used up
    kCorruption,         // bytes that do not match their checksum or format
    kCancelled,          // we were asked to stop
    kInternal,           // a bug of ours, or a library's
};

// The stable lower-case name of a code, for logs and metric labels, such as "not_found".
std::string_view to_string(ErrorCode code);

// True for transient failures: kUnavailable and kDeadlineExceeded. All retry decisions use this
// function.
bool is_retryable(ErrorCode code);

// A failure as a value. `message` is one line for people: the event and, if known, the next step.
struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message;

    // The same error prefixed with its context: "listing Datasets: connection refused".
    [[nodiscard]] Error prefixed(std::string_view context) const;

    bool operator==(const Error&) const = default;
};

}  // namespace stoker
