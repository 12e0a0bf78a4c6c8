#pragma once

#include <vector>

#include "common/base/bytes.h"

namespace stoker::control {

// Max-min fair division: everybody gets the same, but nobody more than they need, and what is left
// goes to the others. Returns one amount for each of `needs`, in their order, whose sum is min(sum
// of needs, budget) to the byte. Pure. Water-filling as in Bertsekas and Gallager, "Data
// Networks", 6.5.2.
std::vector<Bytes> level_fill(const std::vector<Bytes>& needs, Bytes budget);

}  // namespace stoker::control
