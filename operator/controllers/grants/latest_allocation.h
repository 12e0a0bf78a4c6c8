#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/guarded.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/profile/job_profile.h"
#include "operator/core/view/over_quota_holders.h"

namespace stoker::control {

// The last plan of the cluster's cache, and its input.
struct Allocation {
    std::optional<WallTime> decided_at;  // none: no plan yet
    AllocationView view;
    AllocationPlan plan;
    std::map<std::string, Bytes> granted;      // by pool
    std::optional<WallTime> sampled_at;        // arrival of the newest report
    std::map<ObjectKey, JobProfile> profiles;  // of jobs with at least one measurement
    std::uint64_t reports_absurd = 0;          // reports with impossible rates
    std::vector<OverQuotaHolder> late;         // holders that return bytes too late
    std::size_t unheard =
        0;  // sidecars that attached before this leader and have not reported since

    [[nodiscard]] Bytes granted_in(const std::string& pool) const {
        const auto found = granted.find(pool);
        return found == granted.end() ? Bytes::zero() : found->second;
    }
};

// Holds the latest Allocation: the grants controller writes it, others read it. Snapshots are
// immutable. Thread-safe.
class LatestAllocation {
public:
    using Snapshot = std::shared_ptr<const Allocation>;

    // Never null.
    Snapshot get() { return *latest_.lock(); }

    void put(Allocation allocation) {
        *latest_.lock() = std::make_shared<const Allocation>(std::move(allocation));
    }

private:
    Guarded<Snapshot> latest_{std::make_shared<const Allocation>()};
};

}  // namespace stoker::control
