#pragma once

#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/controllers/grants/latest_allocation.h"

namespace stoker::control {

// Serves /debug/allocation on the operator's debug port: the snapshot that `kubectl stoker`
// explains and changes (operator/core/allocation/snapshot.h). Only the leader can answer.
// Thread-safe.
class AllocationPage {
public:
    static constexpr const char* kPath = "/debug/allocation";

    // The leading replica; "" if unknown.
    struct Leadership {
        bool ours = false;
        std::string holder;
    };

    struct Answer {
        int status = 200;
        std::string body;  // JSON; with 503 {"leader": ..., "message": ...}
    };

    // All arguments must outlive it.
    AllocationPage(
        LatestAllocation& latest,
        const Clock& clock,
        std::string version,
        std::function<Leadership()> leadership);

    // 503 if another replica leads, or if we lead and have no plan yet.
    Answer answer();

private:
    LatestAllocation& latest_;
    const Clock& clock_;
    std::string version_;
    std::function<Leadership()> leadership_;
};

}  // namespace stoker::control
