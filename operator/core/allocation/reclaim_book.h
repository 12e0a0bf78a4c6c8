#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "operator/core/allocation/allocation_plan.h"

namespace stoker::control {

// Reclaims in progress, from the first plan that contains them until the bytes are gone. Pure: the
// caller passes the time. Not thread-safe.
class ReclaimBook {
public:
    // Shortest grace period: a sidecar must receive the grant, act, and report.
    static constexpr Duration kGraceMin = std::chrono::seconds{10};

    // Takes the newest plan's reclaims. A further cut restarts the grace period.
    void watch(const std::vector<Reclaim>& reclaims, TimePoint now);

    // Reclaims that the last watch() added, or cut by more than a twentieth.
    [[nodiscard]] const std::vector<Reclaim>& begun() const { return begun_; }

    // Reclaims that the last watch() found late: the grace period is over, bytes remain.
    [[nodiscard]] const std::vector<Reclaim>& became_late() const { return became_late_; }

    // All late reclaims.
    [[nodiscard]] std::vector<Reclaim> late() const;

private:
    using Place = std::tuple<std::string, std::string, std::string>;  // pool, node, dataset

    struct Entry {
        Reclaim reclaim;
        TimePoint since{};
        bool is_late = false;
    };

    std::map<Place, Entry> entries_;
    std::vector<Reclaim> begun_;
    std::vector<Reclaim> became_late_;
};

}  // namespace stoker::control
