#pragma once

#include <string>

#include "common/base/result.h"

namespace stoker::sidecar {

// The text of a regular file of at most 64 KiB, without the white space at its end that editors and
// `kubectl create secret` leave behind. kForbidden: it cannot be read, is empty or larger; the
// message names it.
Result<std::string> read_small_file(const std::string& path);

}  // namespace stoker::sidecar
