#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Removes the files that version 0.1 kept at the top of a node directory: exactly its names,
// nothing else. Their bytes are never read. Only for the holder of the directory's lock. Gives how
// many files went; 0 while a 0.1 sidecar still leads there (it holds the old lock).
Result<std::uint64_t> remove_old_layout(Device& device, const std::string& node_directory);

}  // namespace stoker::sidecar
