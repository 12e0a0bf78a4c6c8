#include "common/base/posix_error.h"

#include <system_error>

#include <fmt/core.h>

namespace stoker {

namespace {

ErrorCode code_of(int number) {
    switch (number) {
        case ENOENT:
            return ErrorCode::kNotFound;
        case EEXIST:
            return ErrorCode::kAlreadyExists;
        case EACCES:
        case EPERM:
            return ErrorCode::kForbidden;
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
            return ErrorCode::kResourceExhausted;
        case ENOTDIR:
        case ELOOP:
        case ENAMETOOLONG:
        case EINVAL:
            return ErrorCode::kInvalidArgument;
        case EBADF:
        case EFAULT:
            return ErrorCode::kInternal;
        default:
            return ErrorCode::kUnavailable;
    }
}

}  // namespace

Error posix_error(int number, std::string_view operation, std::string_view name) {
    return {
        code_of(number),
        fmt::format("{} {}: {}", operation, name, std::generic_category().message(number))};
}

}  // namespace stoker
