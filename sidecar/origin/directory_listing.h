#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include <sys/stat.h>

#include "common/base/result.h"
#include "common/domain/listing.h"

namespace stoker::sidecar {

// "<size>-<mtime in ns>-<inode>": changes whenever the file is written or replaced.
std::string file_etag(const struct stat& status);

// Lists every regular file below the directory `root`. Follows symbolic links that stay inside
// `root`. A link that leaves it, dangles or forms a loop is an error that names the link, because
// skipping samples silently would be worse. Skips sockets, pipes and devices. Calls `progress` from
// time to time and at the end.
Result<domain::Listing> list_directory(
    int root, const std::function<void(std::uint64_t)>& progress, const std::stop_token& stop);

}  // namespace stoker::sidecar
