#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// The regular files in local, uncompressed tar files (ustar, pax, GNU long names), as an origin of
// objects; a leading "./" of a name is dropped. Skips folders and devices. Fetches run on the
// calling thread. list(): kInvalidArgument for links and sparse files, kCorruption for a damaged
// file, kCancelled if stopped. fetch(): kConflict if a tar file has changed since it was opened.
// kNotFound, kForbidden: a file cannot be opened.
Result<std::unique_ptr<Origin>> make_tar_origin(const std::vector<std::string>& paths);

}  // namespace stoker::sidecar
