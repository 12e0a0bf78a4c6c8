#pragma once

#include <cerrno>
#include <string_view>

#include "common/base/result.h"

namespace stoker {

// The error of a system call that failed, as "OPERATION NAME: words of errno". kNotFound,
// kAlreadyExists, kForbidden, kResourceExhausted (no space, quota, descriptors or memory),
// kInvalidArgument (not a folder, a symbolic link, a name that is too long), kInternal (a bug of
// ours), kUnavailable (anything else: EIO, EROFS, ESTALE and what else a device may say).
Error posix_error(int number, std::string_view operation, std::string_view name);

// The same of errno, to return.
inline tl::unexpected<Error> fail_errno(std::string_view operation, std::string_view name) {
    return fail(posix_error(errno, operation, name));
}

}  // namespace stoker
