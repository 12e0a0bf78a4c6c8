#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/guarded.h"
#include "common/metrics/metrics.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/profile/job_profile.h"
#include "operator/core/view/forecast.h"
#include "operator/core/view/over_quota_holders.h"

namespace stoker::control {

// The last plan of the cluster's cache, and its input.
struct Allocation {
    std::optional<WallTime> decided_at;  // none: no plan yet
    AllocationView view;
    AllocationPlan plan;
    std::map<std::string, Bytes> granted;      // by pool
    std::optional<WallTime> sampled_at;        // when the newest report arrived
    std::map<ObjectKey, JobProfile> profiles;  // of jobs with at least one measurement
    std::uint64_t reports_absurd = 0;          // reports with out-of-range rates
    std::vector<OverQuotaHolder> late;         // holders that return bytes too late
    std::size_t unheard =
        0;            // sidecars that attached before this leader and have not reported since
    Duration took{};  // gathering, planning and sending
    std::map<std::string, Placing> placings{};  // by dataset uid

    [[nodiscard]] Bytes granted_in(const std::string& pool) const {
        const auto found = granted.find(pool);
        return found == granted.end() ? Bytes::zero() : found->second;
    }

    // Null: the plan does not have the job. Needs index().
    [[nodiscard]] const JobAllocation* find(const ObjectKey& job) const {
        const auto found = job_at_.find(job);
        return found == job_at_.end() ? nullptr : &plan.jobs[found->second];
    }

    // Adds the holdings of a dataset to `result`, in the order of view.holdings. Needs index().
    void add_holdings(const std::string& dataset_uid, std::vector<Holding>& result) const {
        const auto found = holdings_of_.find(dataset_uid);
        if (found == holdings_of_.end()) {
            return;
        }
        for (const std::size_t at : found->second) {
            result.push_back(view.holdings[at]);
        }
    }

    // Call it after a change of plan.jobs or view.holdings.
    void index() {
        job_at_.clear();
        holdings_of_.clear();
        for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
            job_at_[plan.jobs[i].job] = i;
        }
        for (std::size_t i = 0; i < view.holdings.size(); ++i) {
            holdings_of_[view.holdings[i].dataset_uid].push_back(i);
        }
    }

private:
    std::map<ObjectKey, std::size_t> job_at_;
    std::map<std::string, std::vector<std::size_t>> holdings_of_;
};

// Holds the latest Allocation: the grants controller writes it, others read it. Snapshots are
// immutable. Thread-safe.
class LatestAllocation {
public:
    using Snapshot = std::shared_ptr<const Allocation>;

    // Never null.
    Snapshot get() { return *latest_.lock(); }

    // Observes from now on how many seconds each plan took. Call it before the first put().
    void observe(std::shared_ptr<metrics::Histogram> plan_seconds) {
        plan_seconds_ = std::move(plan_seconds);
    }

    // Returns the new snapshot.
    Snapshot put(Allocation allocation) {
        if (plan_seconds_ != nullptr) {
            plan_seconds_->observe(std::chrono::duration<double>(allocation.took).count());
        }
        allocation.index();
        const auto snapshot = std::make_shared<const Allocation>(std::move(allocation));
        *latest_.lock() = snapshot;
        return snapshot;
    }

private:
    std::shared_ptr<metrics::Histogram> plan_seconds_;
    Guarded<Snapshot> latest_{std::make_shared<const Allocation>()};
};

}  // namespace stoker::control
