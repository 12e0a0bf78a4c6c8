#pragma once

#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/controllers/grants/latest_allocation.h"

namespace stoker::control {

// What /debug/allocation of the operator's HTTP port says: the snapshot that `kubectl stoker`
// explains and plays with (operator/core/allocation/snapshot.h). Only who decides can answer.
// Thread-safe.
class AllocationPage {
public:
    static constexpr const char* kPath = "/debug/allocation";

    // The replica that leads; "" when none is known.
    struct Leadership {
        bool ours = false;
        std::string holder;
    };

    struct Answer {
        int status = 200;
        std::string body;  // JSON; with 503 {"leader": ..., "message": ...}
    };

    // All must outlive it.
    AllocationPage(
        LatestAllocation& latest,
        const Clock& clock,
        std::string version,
        std::function<Leadership()> leadership);

    // 503 where another replica leads, or where we lead and have decided nothing yet.
    Answer answer();

private:
    LatestAllocation& latest_;
    const Clock& clock_;
    std::string version_;
    std::function<Leadership()> leadership_;
};

}  // namespace stoker::control
