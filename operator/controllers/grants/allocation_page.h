#pragma once

#include <string>

#include "common/base/clock.h"
#include "operator/controllers/grants/latest_allocation.h"

namespace stoker::control {

inline constexpr const char* kAllocationPath = "/debug/allocation";

// The leading replica; "" if unknown.
struct Leadership {
    bool ours = false;
    std::string holder;
};

struct PageAnswer {
    int status = 200;
    std::string body;  // JSON; with 503 {"leader": ..., "message": ...}
};

// The page at kAllocationPath on the operator's debug port: the snapshot that `kubectl stoker`
// explains and changes (operator/core/allocation/snapshot.h). 503 if another replica leads, or if we
// lead and have no plan yet. Pure.
PageAnswer allocation_page(
    const Allocation& latest,
    WallTime now,
    const std::string& version,
    const Leadership& leadership);

}  // namespace stoker::control
