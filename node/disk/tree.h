#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"

// Measures and removes folder trees whose contents a tenant chose: any depth, any number and kind
// of entries. Both functions need three descriptors, and memory for one name per level of depth.
// They never follow symbolic links and never enter other file systems.
namespace stoker::node {

struct TreeUse {
    Bytes allocated{};  // allocated blocks; a file's blocks are divided among its hard links
    std::uint64_t entries = 0;
    bool complete = true;  // false: `entries_max` was reached
};

Result<TreeUse> measure_tree(int folder, std::uint64_t entries_max);

// Removes everything in the folder, but not the folder itself. No other process may write there
// meanwhile. Stops with an error at the first entry that cannot be removed.
Status empty_tree(int folder);

}  // namespace stoker::node
