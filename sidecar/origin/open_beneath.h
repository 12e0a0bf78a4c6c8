#pragma once

#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::sidecar {

// Opens `path`, relative to the directory `root`, without leaving it by "..", an absolute path or a
// symbolic link (openat2() follows links that stay inside; kernels without it follow none). `flags`
// as for open(). kForbidden: it would leave, or no permission. kNotFound: also if it is no longer a
// file. Otherwise the errors of posix_error().
Result<UniqueFd> open_beneath(int root, const std::string& path, int flags);

}  // namespace stoker::sidecar
