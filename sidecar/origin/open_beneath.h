#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::sidecar {

// Opens `path`, relative to the directory `root`, without ever leaving it: not by "..", not by an
// absolute path, not by a symbolic link (links that stay inside are followed where the kernel has
// openat2(); elsewhere no link is). `flags` as for open(). kForbidden: it would leave, or no
// permission. kNotFound, kUnavailable (I/O error, stale handle), kInvalidArgument.
Result<UniqueFd> open_beneath(int root, const std::string& path, int flags);

// The error for an errno of a file operation.
Error file_error(int error_number);

}  // namespace stoker::sidecar
