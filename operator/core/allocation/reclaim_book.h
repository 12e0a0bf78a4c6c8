#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "operator/core/allocation/allocation_plan.h"

namespace stoker::control {

// Bytes that go back, from the plan that first said so until they are gone. Pure: time comes in.
// One owner, not thread-safe.
class ReclaimBook {
public:
    // No grace is shorter: a sidecar must hear of it, act, and report.
    static constexpr Duration kGraceMin = std::chrono::seconds{10};

    // The reclaims of the newest plan. What is granted even less than before begins anew.
    void watch(const std::vector<Reclaim>& reclaims, TimePoint now);

    // Reclaims that the last watch() saw for the first time, or that were cut further, by more than
    // a twentieth.
    [[nodiscard]] const std::vector<Reclaim>& begun() const { return begun_; }

    // Reclaims that became late with the last watch(): the grace is over, bytes are still there.
    [[nodiscard]] const std::vector<Reclaim>& became_late() const { return became_late_; }

    // All that are late.
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
