#pragma once

#include <string>

#include "common/base/result.h"

namespace stoker {

// The whole text of a file that our own people or Kubernetes wrote. kNotFound: it cannot be read;
// the message names it.
Result<std::string> read_file(const std::string& path);

// The same without white space at its end, as tokens and certificates are wanted. kNotFound also
// where nothing is left: files in volumes are empty for a moment while they change.
Result<std::string> read_filled_file(const std::string& path);

}  // namespace stoker
