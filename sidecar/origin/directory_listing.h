#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "common/base/result.h"
#include "common/domain/manifest.h"

namespace stoker::sidecar {

// "<size>-<mtime in ns>-<inode>": changes whenever the file is written or replaced.
std::string file_etag(const struct stat& status);

// Every regular file below the directory `root`. Links that stay inside are followed; one that
// leaves it, dangles or closes a circle is an error that names it, because leaving samples out in
// silence would be worse. Sockets, pipes and devices are left out. `progress` is called now and
// then and at the end.
Result<std::vector<domain::ListedObject>> list_directory(
    int root, const std::function<void(std::uint64_t)>& progress, const std::stop_token& stop);

}  // namespace stoker::sidecar
