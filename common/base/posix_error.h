#pragma once

#include <cerrno>
#include <string_view>

#include "common/base/result.h"

namespace stoker {

// The error of a failed system call, as "OPERATION NAME: strerror text". kNotFound, kAlreadyExists,
// kForbidden, kResourceExhausted (no space, quota, descriptors or memory), kInvalidArgument (not a
// folder, a symbolic link, a name that is too long), kInternal (our bug), kUnavailable (any other:
// EIO, EROFS, ESTALE).
Error posix_error(int number, std::string_view operation, std::string_view name);

// posix_error() for errno, as a return value.
inline tl::unexpected<Error> fail_errno(std::string_view operation, std::string_view name) {
    return fail(posix_error(errno, operation, name));
}

}  // namespace stoker
