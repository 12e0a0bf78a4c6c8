#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"

// Whole folders whose contents a tenant chose: of any depth, with any number and kind of entries.
// Both need three descriptors and memory for one name a level at a time. Symbolic links are never
// followed, and other file systems are never entered.
namespace stoker::node {

struct TreeUse {
    Bytes allocated{};  // blocks, as the file system counts them; each name of a file counts for
                        // its share
    std::uint64_t entries = 0;
    bool complete = true;  // false: `entries_max` was reached
};

Result<TreeUse> measure_tree(int folder, std::uint64_t entries_max);

// Removes everything in the folder, not the folder. Nobody else may write there meanwhile. An entry
// that cannot be removed ends it with that error.
Status empty_tree(int folder);

}  // namespace stoker::node
