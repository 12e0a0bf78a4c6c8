#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Removes the files of version 0.1 at the top of a node directory, by exact name, without reading
// them. The caller holds the directory's lock. Returns the number of removed files; 0 while a 0.1
// sidecar still leads there (it holds the old lock).
Result<std::uint64_t> remove_old_layout(Device& device, const std::string& node_directory);

}  // namespace stoker::sidecar
