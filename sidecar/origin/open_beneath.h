#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::sidecar {

// Opens `path`, relative to the directory `root`, without ever leaving it: not by "..", not by an
// absolute path, not by a symbolic link (links that stay inside are followed where the kernel has
// openat2(); elsewhere no link is). `flags` as for open(). kForbidden: it would leave, or no
// permission. kNotFound: also where it is no file any more. Else the errors of posix_error().
Result<UniqueFd> open_beneath(int root, const std::string& path, int flags);

}  // namespace stoker::sidecar
