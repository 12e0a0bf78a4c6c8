#pragma once

#include <string>

#include "common/base/result.h"

namespace stoker {

// The whole text of a file from a trusted writer (administrator or Kubernetes). kNotFound: it
// cannot be read; the message names it.
Result<std::string> read_file(const std::string& path);

// As read_file(), without trailing white space, for tokens and certificates. kNotFound also if
// nothing is left: files in volumes are empty for a moment during an update.
Result<std::string> read_filled_file(const std::string& path);

}  // namespace stoker
