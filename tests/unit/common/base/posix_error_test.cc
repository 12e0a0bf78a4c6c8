#include "common/base/posix_error.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(PosixError, MapsErrnoToErrorCodes) {
    const std::vector<std::pair<int, ErrorCode>> table{
        {ENOENT, ErrorCode::kNotFound},
        {EEXIST, ErrorCode::kAlreadyExists},
        {EACCES, ErrorCode::kForbidden},
        {EPERM, ErrorCode::kForbidden},
        {ENOSPC, ErrorCode::kResourceExhausted},
        {EDQUOT, ErrorCode::kResourceExhausted},
        {EMFILE, ErrorCode::kResourceExhausted},
        {ENOTDIR, ErrorCode::kInvalidArgument},
        {ELOOP, ErrorCode::kInvalidArgument},
        {EIO, ErrorCode::kUnavailable},
        {EROFS, ErrorCode::kUnavailable},
        {ESTALE, ErrorCode::kUnavailable},
        {EBADF, ErrorCode::kInternal},
    };
    for (const auto& [number, code] : table) {
        EXPECT_EQ(posix_error(number, "writing", "/x").code, code) << number;
    }
    EXPECT_EQ(posix_error(ENOSPC, "writing", "/x").message, "writing /x: No space left on device");
}

}  // namespace
}  // namespace stoker
