#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// An origin in a mounted directory (NFS, Lustre, a volume, a local disk). Keys are paths relative
// to it; nothing outside it is read. A few threads read whole files and retry I/O errors by the
// retry policy. kNotFound, kForbidden: cannot be opened. kInvalidArgument: not a directory.
Result<std::unique_ptr<Origin>> make_directory_origin(
    const std::string& path, const OriginOptions& options, const Clock& clock, std::uint64_t seed);

}  // namespace stoker::sidecar
