#pragma once

#include <string>

#include "common/base/result.h"

namespace stoker {

// Reads the whole text of a file from a trusted writer (administrator or Kubernetes). kNotFound:
// the file cannot be read; the message names it.
Result<std::string> read_file(const std::string& path);

// Reads a file as read_file() does and removes trailing white space, for tokens and certificates.
// kNotFound also if nothing is left: files in volumes are empty for a moment during an update.
Result<std::string> read_filled_file(const std::string& path);

}  // namespace stoker
