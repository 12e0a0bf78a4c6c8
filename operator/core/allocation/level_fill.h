#pragma once

#include <vector>

#include "common/base/bytes.h"

namespace stoker::control {

// Max-min fair division: equal shares, but none above its need; the rest is divided among the
// other needs. Returns one amount for each of `needs`, in their order, whose sum is exactly min(sum
// of needs, budget). Pure. Water-filling as in Bertsekas and Gallager, "Data Networks", 6.5.2.
std::vector<Bytes> level_fill(const std::vector<Bytes>& needs, Bytes budget);

}  // namespace stoker::control
